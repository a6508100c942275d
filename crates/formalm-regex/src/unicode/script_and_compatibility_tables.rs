//! Tables of Unicode 16 that `regex-syntax` lacks: the spelling of script names, and the characters
//! with a compatibility mapping.

/// Scripts by their long name, then their aliases, separated by semicolons. ECMA-262 is strict
/// about spelling; the tables of `regex-syntax` are not.
const SCRIPTS: &str = "\
    Adlam Adlm; Ahom; Anatolian_Hieroglyphs Hluw; Arabic Arab; Armenian Armn; Avestan Avst; \
    Balinese Bali; Bamum Bamu; Bassa_Vah Bass; Batak Batk; Bengali Beng; Bhaiksuki Bhks; \
    Bopomofo Bopo; Brahmi Brah; Braille Brai; Buginese Bugi; Buhid Buhd; Canadian_Aboriginal \
    Cans; Carian Cari; Caucasian_Albanian Aghb; Chakma Cakm; Cham; Cherokee Cher; Chorasmian \
    Chrs; Common Zyyy; Coptic Copt Qaac; Cuneiform Xsux; Cypriot Cprt; Cypro_Minoan Cpmn; \
    Cyrillic Cyrl; Deseret Dsrt; Devanagari Deva; Dives_Akuru Diak; Dogra Dogr; Duployan Dupl; \
    Egyptian_Hieroglyphs Egyp; Elbasan Elba; Elymaic Elym; Ethiopic Ethi; Garay Gara; Georgian \
    Geor; Glagolitic Glag; Gothic Goth; Grantha Gran; Greek Grek; Gujarati Gujr; Gunjala_Gondi \
    Gong; Gurmukhi Guru; Gurung_Khema Gukh; Han Hani; Hangul Hang; Hanifi_Rohingya Rohg; Hanunoo \
    Hano; Hatran Hatr; Hebrew Hebr; Hiragana Hira; Imperial_Aramaic Armi; Inherited Qaai Zinh; \
    Inscriptional_Pahlavi Phli; Inscriptional_Parthian Prti; Javanese Java; Kaithi Kthi; Kannada \
    Knda; Katakana Kana; Kawi; Kayah_Li Kali; Kharoshthi Khar; Khitan_Small_Script Kits; Khmer \
    Khmr; Khojki Khoj; Khudawadi Sind; Kirat_Rai Krai; Lao Laoo; Latin Latn; Lepcha Lepc; Limbu \
    Limb; Linear_A Lina; Linear_B Linb; Lisu; Lycian Lyci; Lydian Lydi; Mahajani Mahj; Makasar \
    Maka; Malayalam Mlym; Mandaic Mand; Manichaean Mani; Marchen Marc; Masaram_Gondi Gonm; \
    Medefaidrin Medf; Meetei_Mayek Mtei; Mende_Kikakui Mend; Meroitic_Cursive Merc; \
    Meroitic_Hieroglyphs Mero; Miao Plrd; Modi; Mongolian Mong; Mro Mroo; Multani Mult; Myanmar \
    Mymr; Nabataean Nbat; Nag_Mundari Nagm; Nandinagari Nand; New_Tai_Lue Talu; Newa; Nko Nkoo; \
    Nushu Nshu; Nyiakeng_Puachue_Hmong Hmnp; Ogham Ogam; Ol_Chiki Olck; Ol_Onal Onao; \
    Old_Hungarian Hung; Old_Italic Ital; Old_North_Arabian Narb; Old_Permic Perm; Old_Persian \
    Xpeo; Old_Sogdian Sogo; Old_South_Arabian Sarb; Old_Turkic Orkh; Old_Uyghur Ougr; Oriya \
    Orya; Osage Osge; Osmanya Osma; Pahawh_Hmong Hmng; Palmyrene Palm; Pau_Cin_Hau Pauc; \
    Phags_Pa Phag; Phoenician Phnx; Psalter_Pahlavi Phlp; Rejang Rjng; Runic Runr; Samaritan \
    Samr; Saurashtra Saur; Sharada Shrd; Shavian Shaw; Siddham Sidd; SignWriting Sgnw; Sinhala \
    Sinh; Sogdian Sogd; Sora_Sompeng Sora; Soyombo Soyo; Sundanese Sund; Sunuwar Sunu; \
    Syloti_Nagri Sylo; Syriac Syrc; Tagalog Tglg; Tagbanwa Tagb; Tai_Le Tale; Tai_Tham Lana; \
    Tai_Viet Tavt; Takri Takr; Tamil Taml; Tangsa Tnsa; Tangut Tang; Telugu Telu; Thaana Thaa; \
    Thai; Tibetan Tibt; Tifinagh Tfng; Tirhuta Tirh; Todhri Todr; Toto; Tulu_Tigalari Tutg; \
    Ugaritic Ugar; Vai Vaii; Vithkuqi Vith; Wancho Wcho; Warang_Citi Wara; Yezidi Yezi; Yi Yiii; \
    Zanabazar_Square Zanb";

/// Characters that `NFKC_Casefold` changes, without those of `Changes_When_Casefolded` or
/// `Default_Ignorable_Code_Point`. Hexadecimal ranges, from the `DerivedNormalizationProps.txt` of
/// ICU 78. The reader removes characters of later versions of Unicode.
const COMPATIBILITY: &str = "\
    a0 a8 aa af b2-b4 b8-ba bc-be 133 140 1c6 1c9 1cc 1f3 2b0-2b8 2d8-2dd 2e0-2e4 340-341 \
    343-344 374 37a 37e 384-385 387 3d2-3d4 3f2 675-678 958-95f 9dc-9dd 9df a33 a36 a59-a5b a5e \
    b5c-b5d e33 eb3 edc-edd f0c f43 f4d f52 f57 f5c f69 f73 f75-f79 f81 f93 f9d fa2 fa7 fac fb9 \
    10fc 1d2c-1d2e 1d30-1d3a 1d3c-1d4d 1d4f-1d6a 1d78 1d9b-1dbf 1f71 1f73 1f75 1f77 1f79 1f7b \
    1f7d 1fbd-1fc1 1fcd-1fcf 1fd3 1fdd-1fdf 1fe3 1fed-1fef 1ffd-1ffe 2000-200a 2011 2017 \
    2024-2026 202f 2033-2034 2036-2037 203c 203e 2047-2049 2057 205f 2070-2071 2074-208e \
    2090-209c 20a8 2100-2103 2105-2107 2109-2113 2115-2116 2119-211d 2120-2122 2124 2128 \
    212c-212d 212f-2131 2133-2139 213b-2140 2145-2149 2150-215f 2170-217f 2189 222c-222d \
    222f-2230 2329-232a 2460-24b5 24d0-24ea 2a0c 2a74-2a76 2adc 2c7c-2c7d 2d6f 2e9f 2ef3 \
    2f00-2fd5 3000 3036 3038-303a 309b-309c 309f 30ff 3131-3163 3165-318e 3192-319f 3200-321e \
    3220-3247 3250-327e 3280-33ff a69c-a69d a770 a7f1-a7f4 a7f8-a7f9 ab5c-ab5f ab69 f900-fa0d \
    fa10 fa12 fa15-fa1e fa20 fa22 fa25-fa26 fa2a-fa6d fa70-fad9 fb1d fb1f-fb36 fb38-fb3c fb3e \
    fb40-fb41 fb43-fb44 fb46-fbb1 fbd3-fd3d fd50-fd8f fd92-fdc7 fdf0-fdfc fe10-fe19 fe30-fe44 \
    fe47-fe52 fe54-fe66 fe68-fe6b fe70-fe72 fe74 fe76-fefc ff01-ff20 ff3b-ff9f ffa1-ffbe \
    ffc2-ffc7 ffca-ffcf ffd2-ffd7 ffda-ffdc ffe0-ffe6 ffe8-ffee 10781-10785 10787-107b0 \
    107b2-107ba 1ccd6-1ccf9 1d15e-1d164 1d1bb-1d1c0 1d400-1d454 1d456-1d49c 1d49e-1d49f 1d4a2 \
    1d4a5-1d4a6 1d4a9-1d4ac 1d4ae-1d4b9 1d4bb 1d4bd-1d4c3 1d4c5-1d505 1d507-1d50a 1d50d-1d514 \
    1d516-1d51c 1d51e-1d539 1d53b-1d53e 1d540-1d544 1d546 1d54a-1d550 1d552-1d6a5 1d6a8-1d7cb \
    1d7ce-1d7ff 1e030-1e06d 1ee00-1ee03 1ee05-1ee1f 1ee21-1ee22 1ee24 1ee27 1ee29-1ee32 \
    1ee34-1ee37 1ee39 1ee3b 1ee42 1ee47 1ee49 1ee4b 1ee4d-1ee4f 1ee51-1ee52 1ee54 1ee57 1ee59 \
    1ee5b 1ee5d 1ee5f 1ee61-1ee62 1ee64 1ee67-1ee6a 1ee6c-1ee72 1ee74-1ee77 1ee79-1ee7c 1ee7e \
    1ee80-1ee89 1ee8b-1ee9b 1eea1-1eea3 1eea5-1eea9 1eeab-1eebb 1f100-1f10a 1f110-1f12e \
    1f130-1f14f 1f16a-1f16c 1f190 1f200-1f202 1f210-1f23b 1f240-1f248 1f250-1f251 1fbf0-1fbf9 \
    2f800-2fa1d";

/// Returns `true` if a script has exactly this name.
pub fn is_script(name: &str) -> bool {
    SCRIPTS.split("; ").any(|names| names.split(' ').any(|one| one == name))
}

/// Returns all names of scripts.
pub fn scripts() -> impl Iterator<Item = &'static str> {
    SCRIPTS.split("; ").flat_map(|names| names.split(' ')).chain(["Unknown", "Zzzz"])
}

/// Returns the ranges of `COMPATIBILITY`.
pub fn compatibility() -> impl Iterator<Item = (char, char)> {
    COMPATIBILITY.split(' ').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let character = |digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?);
        Some((character(first)?, character(last)?))
    })
}
