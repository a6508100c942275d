//! Formats as patterns, from the standards that JSON Schema names.

mod bounded_timestamps;
mod byte_length;
mod embedded_document;
mod idna;
mod leap_seconds;
mod urls;

use std::sync::Arc;

use formalm_automata::syntax::{PatternDialect, PatternFlags, RegexSourceRecognizer, parse};
use formalm_automata::{Error, Expression, SetOnce};

pub(crate) use self::bounded_timestamps::{BoundedTimestamps, TimestampBound};
pub(crate) use self::byte_length::ByteCount;
pub(crate) use self::embedded_document::EmbeddedDocument;
use self::leap_seconds::LeapSeconds;
pub(crate) use self::urls::Urls;

/// The formats that are known.
pub const NAMES: [&str; 19] = [
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uri-template",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// The texts of a format, made once for all schemas; `None` if we do not know it.
pub(crate) fn format(name: &str) -> Option<Result<Expression, Error>> {
    static MADE: [SetOnce<Option<Result<Expression, Error>>>; NAMES.len()] =
        [const { SetOnce::new() }; NAMES.len()];
    let at = NAMES.iter().position(|&one| one == name)?;
    MADE[at].get_or_init(|| made(name)).clone()
}

fn made(name: &str) -> Option<Result<Expression, Error>> {
    let source = match name {
        "date" => date(),
        "time" => return Some(any_time()),
        "date-time" => return Some(any_date_time()),
        "regex" => return Some(Ok(Expression::custom(Arc::new(RegexSourceRecognizer::default())))),
        "duration" => duration(),
        "email" => email("[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]", "[ -!#-\\[\\]-~]", &hostname_labels()),
        // RFC 6531 has letters beyond ASCII in its grammar; the rules of IDNA are not part of it.
        "idn-email" => email(
            "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\\u{80}-\\u{10FFFF}-]",
            "[ -!#-\\[\\]-~\\u{80}-\\u{10FFFF}]",
            &labels(&format!("{LETTERS}\\u{{80}}-\\u{{10FFFF}}"), "*"),
        ),
        "hostname" => return Some(idna::names(false)),
        "idn-hostname" => return Some(idna::names(true)),
        "ipv4" => ipv4(),
        "ipv6" => ipv6(),
        "uri" => uri(&ascii_characters(), ""),
        "uri-reference" => reference(&ascii_characters(), ""),
        "iri" => uri(&wide_characters(), PRIVATE),
        "iri-reference" => reference(&wide_characters(), PRIVATE),
        "uri-template" => uri_template(),
        "uuid" => format!("{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"),
        "json-pointer" => POINTER.to_owned(),
        "relative-json-pointer" => format!("(?:0|[1-9][0-9]*)(?:#|{POINTER})"),
        _ => return None,
    };
    Some(whole(&source))
}

const HEX: &str = "[0-9a-fA-F]";
const POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";
const PRIVATE: &str = "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";

fn whole(source: &str) -> Result<Expression, Error> {
    parse(source, PatternDialect::Ecma, PatternFlags::default()).map(Expression::pattern)
}

fn date() -> String {
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
     |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))\
     |(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
        .to_owned()
}

/// A time of day without leap seconds.
fn time() -> String {
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?\
     (?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
        .to_owned()
}

/// The same with leap seconds, which are at 23:59:60 in UTC.
fn any_time() -> Result<Expression, Error> {
    Expression::union(vec![whole(&time())?, Expression::custom(Arc::new(LeapSeconds))])
}

fn any_date_time() -> Result<Expression, Error> {
    Expression::concat(vec![whole(&format!("{}[Tt]", date()))?, any_time()?])
}

fn duration() -> String {
    let times = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    let dates = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
    format!("P(?:[0-9]+W|{dates}(?:{times})?|{times})")
}

/// Letters and digits, as the inside of a class.
const LETTERS: &str = "a-zA-Z0-9";

fn hostname_labels() -> String {
    labels(LETTERS, "{0,61}")
}

/// Labels of these letters, with hyphens within them; so many characters are between their ends.
fn labels(letters: &str, between: &str) -> String {
    let label = format!("[{letters}](?:[{letters}-]{between}[{letters}])?");
    format!("{label}(?:\\.{label})*")
}

fn email(atom: &str, quoted: &str, domain: &str) -> String {
    format!(
        "(?:{atom}+(?:\\.{atom}+)*|\"(?:{quoted}|\\\\[ -~])*\")@(?:{domain}|\\[(?:{}|IPv6:{})\\])",
        ipv4(),
        ipv6()
    )
}

fn ipv4() -> String {
    let byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    format!("{byte}(?:\\.{byte}){{3}}")
}

fn ipv6() -> String {
    let group = format!("{HEX}{{1,4}}");
    let last = format!("(?:{group}:{group}|{})", ipv4());
    let mut forms = vec![format!("(?:{group}:){{6}}{last}")];
    for before in 0..=7usize {
        let head = match before {
            0 => String::new(),
            more => format!("{group}(?::{group}){{0,{}}}", more - 1),
        };
        let head = if before == 0 { head } else { format!("(?:{head})?") };
        let tail = match 7 - before {
            0 => String::new(),
            1 => group.clone(),
            more => format!("(?:{group}:){{{}}}{last}", more - 2),
        };
        forms.push(format!("{head}::{tail}"));
    }
    format!("(?:{})", forms.join("|"))
}

/// The inside of the class of unreserved characters.
fn ascii_characters() -> String {
    "A-Za-z0-9._~\\-".to_owned()
}

fn wide_characters() -> String {
    let mut ranges = "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}".to_owned();
    for plane in 1..=14u32 {
        let first = if plane == 14 { 0xE1000 } else { plane << 16 };
        ranges.push_str(&format!("\\u{{{first:X}}}-\\u{{{:X}}}", (plane << 16) + 0xFFFD));
    }
    format!("{ranges}A-Za-z0-9._~\\-")
}

/// `hierarchy ? query # fragment` of RFC 3986 and RFC 3987, by what the path may begin with.
fn parts(unreserved: &str, private: &str, paths: &str) -> String {
    let percent = format!("%{HEX}{{2}}");
    let name = format!("(?:[{unreserved}!$&'()*+,;=]|{percent})*");
    let user = format!("(?:(?:[{unreserved}!$&'()*+,;=:]|{percent})*@)?");
    let future = format!("[vV]{HEX}+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+");
    let host = format!("(?:\\[(?:{}|{future})\\]|{name})", ipv6());
    let one = format!("(?:[{unreserved}!$&'()*+,;=:@]|{percent})");
    let authority = format!("//{user}{host}(?::[0-9]*)?(?:/{one}*)*");
    let absolute = format!("/(?:{one}+(?:/{one}*)*)?");
    let query = format!("(?:[{private}{unreserved}!$&'()*+,;=:@/?]|{percent})*");
    let fragment = format!("(?:[{unreserved}!$&'()*+,;=:@/?]|{percent})*");
    let rootless = paths
        .replace("<one>", &one)
        .replace("<first>", &{ format!("(?:[{unreserved}!$&'()*+,;=@]|{percent})") });
    format!("(?:{authority}|{absolute}|{rootless})?(?:\\?{query})?(?:#{fragment})?")
}

fn uri(unreserved: &str, private: &str) -> String {
    let rest = parts(unreserved, private, "<one>+(?:/<one>*)*");
    format!("[A-Za-z][A-Za-z0-9+.-]*:{rest}")
}

fn reference(unreserved: &str, private: &str) -> String {
    let relative = parts(unreserved, private, "<first>+(?:/<one>*)*");
    format!("(?:{}|{relative})", uri(unreserved, private))
}

fn uri_template() -> String {
    let percent = format!("%{HEX}{{2}}");
    let letter = format!("(?:[A-Za-z0-9_]|{percent})");
    let name = format!("{letter}(?:\\.?{letter})*");
    let variable = format!("{name}(?::[1-9][0-9]{{0,3}}|\\*)?");
    let literal = "[!#$&-;=?-\\[\\]_a-z~\\u{A0}-\\u{D7FF}\\u{E000}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}\
                   \\u{10000}-\\u{10FFFF}]";
    format!("(?:{literal}|{percent}|\\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\\}})*")
}

#[cfg(test)]
mod tests {
    use super::format;
    use formalm_automata::{Automaton, AutomatonLimits, Machine};

    #[test]
    fn formats_hold_what_the_standards_say() {
        let cases = [
            ("date", "2024-02-29", true),
            ("date", "2023-02-29", false),
            ("time", "15:59:60-08:00", true),
            ("time", "22:59:60Z", false),
            ("ipv6", "::", true),
            ("ipv6", "1::", true),
            ("ipv6", "1:2:3:4:5:6:7:8", true),
            ("ipv6", "1:2:3:4:5:6:1.2.3.4", true),
            ("ipv6", "1:2:3:4:5:6:7:8:9", false),
            ("ipv6", "::ffff:1.2.3.4", true),
            ("ipv6", "1::2::3", false),
            ("uri", "http://a/b?c#d", true),
            ("uri", "//a", false),
            ("uri-reference", "a:b", true),
            ("uri-reference", "./a:b", true),
            ("hostname", "a-b.c", true),
            ("hostname", "-a", false),
            ("email", "a.b@c.d", true),
            ("email", "a..b@c.d", false),
        ];
        for (name, text, expected) in cases {
            let Some(Ok(expression)) = format(name) else { panic!("{name} is no format") };
            let Ok(machine) = Automaton::new(&expression, AutomatonLimits::default()) else {
                panic!("{name} is empty")
            };
            let read = machine.walk(machine.start(), text.as_bytes());
            let member = matches!(read, Ok(Ok(state)) if machine.is_accepting(state));
            assert_eq!(member, expected, "{name}: {text}");
        }
    }
}
