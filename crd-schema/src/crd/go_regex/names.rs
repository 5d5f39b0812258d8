//! The names of `\p{…}` and of `[:…:]` that Go knows.

/// The scripts of `unicode.Scripts` whose names are in the form of [`canonical`].
///
/// Go finds no others, such as `Old_Italic`, as it removes the underscore before it looks.
const SCRIPTS: &str = "Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi \
    Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han \
    Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya \
    Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese \
    Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai \
    Vithkuqi Wancho Yezidi Yi";

/// The names of general categories with their aliases, in the form of [`canonical`].
const CATEGORIES: &str = "C Cc Cf Cn Co Cs L Lc Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So \
    Z Zl Zp Zs Casedletter Closepunctuation Combiningmark Connectorpunctuation Control Currencysymbol Dashpunctuation \
    Decimalnumber Enclosingmark Finalpunctuation Format Initialpunctuation Letter Letternumber Lineseparator \
    Lowercaseletter Mark Mathsymbol Modifierletter Modifiersymbol Nonspacingmark Number Openpunctuation Other \
    Otherletter Othernumber Otherpunctuation Othersymbol Paragraphseparator Privateuse Punctuation Separator \
    Spaceseparator Spacingmark Surrogate Symbol Titlecaseletter Unassigned Uppercaseletter Cntrl Digit Punct";

/// The names of `[:…:]`.
const ASCII_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The class of a Unicode name as the crate `regex` writes it; `None` if Go does not know the name.
///
/// An empty text is a class of surrogates, which no text contains.
pub(super) fn unicode_class(name: &str) -> Option<String> {
    let name = canonical(name);
    let knows = |list: &str| list.split_ascii_whitespace().any(|it| it == name);
    Some(match name.as_str() {
        "Cs" | "Surrogate" => String::new(),
        "Any" | "Assigned" | "Ascii" => format!("{{{name}}}"),
        // The crate takes these for other properties.
        "Cntrl" => "{gc=Cc}".to_owned(),
        "Digit" => "{gc=Nd}".to_owned(),
        "Punct" => "{gc=P}".to_owned(),
        "Combiningmark" => "{gc=M}".to_owned(),
        _ if knows(CATEGORIES) => format!("{{gc={name}}}"),
        _ if knows(SCRIPTS) => format!("{{sc={name}}}"),
        _ => return None,
    })
}

/// Whether Go knows the name of an ASCII class, without `[:` and `:]`.
pub(super) fn is_ascii_class(name: &str) -> bool {
    ASCII_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name))
}

/// The name without `_`, `-` and spaces, the first letter in upper case, the others in lower case.
fn canonical(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for sign in name.chars().filter(|it| !matches!(it, '_' | '-' | ' ')) {
        out.push(if out.is_empty() {
            sign.to_ascii_uppercase()
        } else {
            sign.to_ascii_lowercase()
        });
    }
    out
}
