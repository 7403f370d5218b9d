//! Escaping, numbers as text, and how wide a text will be.

/// Shown where a number is missing or cannot be shown.
pub(crate) const MISSING: &str = "\u{2013}";

/// `text` made safe inside HTML and XML, as content or as an attribute value. Characters that XML does not allow become
/// U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            '\u{FFFE}' | '\u{FFFF}' => out.push('\u{FFFD}'),
            c if c.is_control() => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// `text` on one terminal line: no control character (and so no escape sequence) gets through.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `v` with exactly `decimals` decimals and an ASCII minus; `None` when it is not finite.
pub(crate) fn plain(v: f64, decimals: usize) -> Option<String> {
    if !v.is_finite() {
        return None;
    }
    let s = format!("{v:.decimals$}");
    // A rounded-away negative is zero, not minus zero.
    let zero = s.starts_with('-') && s.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
    Some(if zero { s.trim_start_matches('-').to_owned() } else { s })
}

/// `v` for readers: fixed decimals, a true minus, thousands set apart from five digits on; huge values as a power.
pub(crate) fn fixed(v: f64, decimals: usize) -> String {
    if v.is_finite() && v.abs() >= 1e15 {
        return power(v);
    }
    let Some(s) = plain(v, decimals) else { return MISSING.to_owned() };
    let (sign, digits) = s.strip_prefix('-').map_or(("", s.as_str()), |rest| ("\u{2212}", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i).is_multiple_of(3) {
            out.push('\u{202F}');
        }
        out.push(c);
    }
    if let Some(f) = fraction {
        out.push('.');
        out.push_str(f);
    }
    out
}

/// `v` with about four significant digits, for tool tips and logarithmic axes.
pub(crate) fn short(v: f64) -> String {
    let a = v.abs();
    if !v.is_finite() {
        return MISSING.to_owned();
    }
    if a != 0.0 && !(1e-4..1e7).contains(&a) {
        return power(v);
    }
    let decimals = match a {
        a if a >= 1_000.0 => 0,
        a if a >= 100.0 => 1,
        a if a >= 10.0 => 2,
        a if a >= 0.1 || a == 0.0 => 3,
        _ => 6,
    };
    let s = fixed(v, decimals);
    if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s }
}

/// `v` as `m×10ⁿ`.
pub(crate) fn power(v: f64) -> String {
    let (mantissa, exponent) = decompose(v);
    let mantissa = fixed(mantissa, 2);
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let head = match mantissa {
        "1" => String::new(),
        "\u{2212}1" => String::from("\u{2212}"),
        m => format!("{m}\u{D7}"),
    };
    format!("{head}10{}", superscript(exponent))
}

fn superscript(n: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    n.to_string()
        .chars()
        .map(|c| c.to_digit(10).and_then(|d| DIGITS.get(d as usize).copied()).unwrap_or('\u{207B}'))
        .collect()
}

/// `v = mantissa * 10^exponent` with `1 <= |mantissa| < 10`; zero gives `(0, 0)`. By decimal formatting, which is exact
/// and the same on every machine, where a logarithm may be off by one at the powers of ten.
pub(crate) fn decompose(v: f64) -> (f64, i32) {
    let s = format!("{v:e}");
    let (m, e) = s.split_once('e').unwrap_or((&s, "0"));
    (m.parse().unwrap_or(0.0), e.parse().unwrap_or(0))
}

/// `mantissa * 10^exponent`, correctly rounded.
pub(crate) fn compose(mantissa: f64, exponent: i32) -> f64 {
    format!("{mantissa}e{exponent}").parse().unwrap_or(f64::NAN)
}

/// A coordinate or length in an SVG: one decimal, no needless zero.
pub(crate) fn px(v: f64) -> String {
    let s = plain(v, 1).unwrap_or_else(|| "0".to_owned());
    s.strip_suffix(".0").map(str::to_owned).unwrap_or(s)
}

/// About how many pixels `text` takes at `size` pixels in a wide sans-serif face. Rather too much than too little.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | '\u{202F}' => 0.32,
            ' ' | 'f' | 'r' | 't' | 'I' | '(' | ')' | '[' | ']' | '/' => 0.41,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
            c if c.is_ascii_uppercase() => 0.7,
            c if c as u32 >= 0x2E80 => 1.0,
            _ => 0.61,
        })
        .sum();
    em * size
}

/// `text` cut to `width` pixels with an ellipsis, or whole.
pub(crate) fn ellipsis(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if text_width(&out, size) + size > width {
            break;
        }
    }
    format!("{}\u{2026}", out.trim_end())
}

/// `text` broken at spaces into lines of at most `width` pixels (a longer word stands alone).
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(" ", size) + text_width(word, size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markup_and_forbidden_characters() {
        assert_eq!(escape(r#"<a b="c" d='e'>&"#), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
        assert_eq!(escape("x\u{0}\u{1b}[31m\u{FFFF}\n"), "x\u{FFFD}\u{FFFD}[31m\u{FFFD}\n");
        assert_eq!(printable("a\u{1b}[31m\nb"), "a [31m b");
    }

    #[test]
    fn numbers_are_fixed_and_never_minus_zero() {
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(-1.5, 1), "\u{2212}1.5");
        assert_eq!(fixed(1234.5, 1), "1234.5");
        assert_eq!(fixed(1_234_567.0, 0), "1\u{202F}234\u{202F}567");
        assert_eq!(fixed(f64::NAN, 2), MISSING);
        assert_eq!(fixed(2.5e18, 0), "2.5\u{D7}10¹⁸");
        assert_eq!(plain(f64::INFINITY, 1), None);
    }

    #[test]
    fn short_keeps_about_four_digits() {
        let all = [0.0, 0.00052, 0.25, 5.876_54, 12.3456, 123.46, 4321.9, 12_345.0, 1e9, 1e-7, -2.5e-9];
        let texts: Vec<String> = all.into_iter().map(short).collect();
        assert_eq!(
            texts,
            ["0", "0.00052", "0.25", "5.877", "12.35", "123.5", "4322", "12\u{202F}345", "10⁹", "10⁻⁷", "−2.5×10⁻⁹"]
        );
    }

    #[test]
    fn powers_are_exact() {
        assert_eq!(decompose(1000.0), (1.0, 3));
        assert_eq!(decompose(0.001), (1.0, -3));
        assert_eq!(decompose(0.0), (0.0, 0));
        assert_eq!(compose(2.5, -1), 0.25);
        assert_eq!(px(3.04), "3");
        assert_eq!(px(-0.01), "0");
        assert_eq!(px(f64::NAN), "0");
    }

    #[test]
    fn text_is_wrapped_and_cut() {
        assert_eq!(wrap("one two  three", 10.0, 50.0), ["one two", "three"]);
        assert!(wrap("  ", 10.0, 50.0).is_empty());
        assert_eq!(ellipsis("short", 10.0, 100.0), "short");
        let cut = ellipsis("a rather long name", 10.0, 50.0);
        assert!(cut.ends_with('\u{2026}') && text_width(&cut, 10.0) <= 56.0, "{cut}");
    }
}
