//! The strings of each `format`, and of string types that JSON Schema cannot express.
//!
//! ```text
//!  date, email, ipv6, uri, …        ──► ECMA pattern ───┐
//!  regex, hostname, leap seconds    ──► CharRecognizer ─┼──► Expression, combined with all others
//!  x-formalm-text: bytes, json, url ──► CharRecognizer ─┘
//! ```
//!
//! The patterns transcribe the RFCs that JSON Schema names. What is not regular, or has no useful
//! expression, is a recognizer. Each format is built once per process.

mod bounded_timestamps;
mod byte_length;
mod embedded_document;
mod encoded_url_hosts;
mod idna;
mod leap_seconds;

use std::sync::Arc;

use formalm_automata::{Expression, RegexSourceRecognizer};
use formalm_core::{Error, SetOnce};
use formalm_regex::{PatternDialect, PatternFlags, parse};

pub(crate) use self::bounded_timestamps::{BoundedTimestamps, TimestampBound};
pub(crate) use self::byte_length::ByteCount;
pub(crate) use self::embedded_document::EmbeddedDocument;
pub(crate) use self::encoded_url_hosts::Urls;
use self::leap_seconds::LeapSeconds;

/// The names of the known formats.
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

/// Returns the strings of a format, built once for all schemas; `None` if the format is unknown.
pub(crate) fn format(name: &str) -> Option<Result<Expression, Error>> {
    static FORMATS: [SetOnce<Option<Result<Expression, Error>>>; NAMES.len()] =
        [const { SetOnce::new() }; NAMES.len()];
    let index = NAMES.iter().position(|&one| one == name)?;
    FORMATS[index].get_or_init(|| build_format(name)).clone()
}

/// Builds the strings of a format; `None` if it is unknown.
fn build_format(name: &str) -> Option<Result<Expression, Error>> {
    let source = match name {
        "date" => date(),
        "time" => return Some(time_or_leap_second()),
        "date-time" => return Some(date_time_or_leap_second()),
        "regex" => return Some(Ok(Expression::custom(Arc::new(RegexSourceRecognizer::default())))),
        "duration" => duration(),
        "email" => email("[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]", "[ -!#-\\[\\]-~]", &hostname_labels()),
        // The grammar of RFC 6531 allows all non-ASCII letters, without the rules of IDNA.
        "idn-email" => email(
            "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~\\u{80}-\\u{10FFFF}-]",
            "[ -!#-\\[\\]-~\\u{80}-\\u{10FFFF}]",
            &dotted_labels(&format!("{ALPHANUMERIC}\\u{{80}}-\\u{{10FFFF}}"), "*"),
        ),
        "hostname" => return Some(idna::host_name_format(false)),
        "idn-hostname" => return Some(idna::host_name_format(true)),
        "ipv4" => ipv4(),
        "ipv6" => ipv6(),
        "uri" => uri(&uri_characters(), ""),
        "uri-reference" => reference(&uri_characters(), ""),
        "iri" => uri(&iri_characters(), PRIVATE_USE),
        "iri-reference" => reference(&iri_characters(), PRIVATE_USE),
        "uri-template" => uri_template(),
        "uuid" => format!("{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"),
        "json-pointer" => JSON_POINTER.to_owned(),
        "relative-json-pointer" => format!("(?:0|[1-9][0-9]*)(?:#|{JSON_POINTER})"),
        _ => return None,
    };
    Some(whole_pattern(&source))
}

/// A hexadecimal digit.
const HEX: &str = "[0-9a-fA-F]";
/// A JSON pointer (RFC 6901).
const JSON_POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";
/// Private-use characters, as the inside of a class; an IRI's query may contain them (RFC 3987).
const PRIVATE_USE: &str = "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";

/// Parses a pattern that describes the whole string.
fn whole_pattern(source: &str) -> Result<Expression, Error> {
    parse(source, PatternDialect::Ecma, PatternFlags::default()).map(Expression::pattern)
}

/// RFC 3339 `full-date`, with the days that a month has.
fn date() -> String {
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])\
     |(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))\
     |(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
        .to_owned()
}

/// RFC 3339 `full-time` without leap seconds.
fn time() -> String {
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?\
     (?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
        .to_owned()
}

/// RFC 3339 `full-time` with leap seconds, which are at 23:59:60 in UTC.
fn time_or_leap_second() -> Result<Expression, Error> {
    let leap_seconds = Expression::named_custom("leap seconds", Arc::new(LeapSeconds));
    Expression::union(vec![whole_pattern(&time())?, leap_seconds])
}

/// RFC 3339 `date-time` with leap seconds.
fn date_time_or_leap_second() -> Result<Expression, Error> {
    Expression::concat(vec![whole_pattern(&format!("{}[Tt]", date()))?, time_or_leap_second()?])
}

/// RFC 3339, appendix A, `duration`.
fn duration() -> String {
    let times = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    let dates = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
    format!("P(?:[0-9]+W|{dates}(?:{times})?|{times})")
}

/// ASCII letters and digits, as the inside of a class.
const ALPHANUMERIC: &str = "a-zA-Z0-9";

/// Host labels of at most 63 ASCII characters, without a length limit on the name.
fn hostname_labels() -> String {
    dotted_labels(ALPHANUMERIC, "{0,61}")
}

/// One or more labels of `letters`, with hyphens only inside a label. `between` quantifies the
/// characters between its first and last one.
fn dotted_labels(letters: &str, between: &str) -> String {
    let label = format!("[{letters}](?:[{letters}-]{between}[{letters}])?");
    format!("{label}(?:\\.{label})*")
}

/// An email address (RFC 5321, `Mailbox`) with the given characters of atoms and quoted strings.
fn email(atom: &str, quoted: &str, domain: &str) -> String {
    format!(
        "(?:{atom}+(?:\\.{atom}+)*|\"(?:{quoted}|\\\\[ -~])*\")@(?:{domain}|\\[(?:{}|IPv6:{})\\])",
        ipv4(),
        ipv6()
    )
}

/// A dotted IPv4 address without leading zeros.
fn ipv4() -> String {
    let byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    format!("{byte}(?:\\.{byte}){{3}}")
}

/// An IPv6 address (RFC 4291, section 2.2): all eight groups, or one `::` in place of some.
///
/// The forms share their beginnings, so that a residual has one alternative and not one for each
/// form.
fn ipv6() -> String {
    let group = format!("{HEX}{{1,4}}");
    // One group or more after `::`; the IPv4 address takes two.
    let tail = |most: u32| match most {
        1 => group.clone(),
        _ => format!("(?:{group}:){{0,{}}}(?:{group}(?::{group})?|{})", most - 2, ipv4()),
    };
    // After six groups, two more, or one before `::`.
    let mut rest = format!("(?:{group}:(?:{group}|:)|{})", ipv4());
    for most in 1..=6 {
        rest = format!("{group}:(?:{rest}|:(?:{})?)", tail(most));
    }
    format!("(?:{rest}|::(?:{})?)", tail(7))
}

/// The unreserved characters of RFC 3986, as the inside of a class.
fn uri_characters() -> String {
    "A-Za-z0-9._~\\-".to_owned()
}

/// The unreserved characters of RFC 3987, as the inside of a class.
fn iri_characters() -> String {
    let mut ranges = "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}".to_owned();
    for plane in 1..=14u32 {
        let first = if plane == 14 { 0xE1000 } else { plane << 16 };
        ranges.push_str(&format!("\\u{{{first:X}}}-\\u{{{:X}}}", (plane << 16) + 0xFFFD));
    }
    format!("{ranges}A-Za-z0-9._~\\-")
}

/// Everything after the scheme of RFC 3986 and RFC 3987: `hierarchy ? query # fragment`. `paths` is
/// the path without a leading slash, where `<one>` and `<first>` stand for its characters.
fn after_scheme(unreserved: &str, private: &str, paths: &str) -> String {
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

/// A URI, or an IRI with a wider class of unreserved characters.
fn uri(unreserved: &str, private: &str) -> String {
    let rest = after_scheme(unreserved, private, "<one>+(?:/<one>*)*");
    format!("[A-Za-z][A-Za-z0-9+.-]*:{rest}")
}

/// A URI or a relative reference, whose first segment has no colon.
fn reference(unreserved: &str, private: &str) -> String {
    let relative = after_scheme(unreserved, private, "<first>+(?:/<one>*)*");
    format!("(?:{}|{relative})", uri(unreserved, private))
}

/// A URI template (RFC 6570).
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
    use formalm_automata::{Automaton, AutomatonLimits};
    use formalm_core::LazyDfa;

    use super::format;

    #[test]
    fn formats_accept_the_strings_of_their_standards() {
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
