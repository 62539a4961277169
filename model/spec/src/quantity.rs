//! Kubernetes quantities as whole numbers of a unit.

/// Bytes of a MiB.
pub(crate) const MIB: u128 = 1 << 20;

/// The quantity as so many of `unit`, rounded down; and whether that left nothing over. `None`: no quantity, below 0, or more
/// than an `i32` holds.
pub(crate) fn count(text: &str, unit: u128) -> Option<(i32, bool)> {
    let (above, below) = fraction(text)?;
    let below = below.checked_mul(unit)?;
    let whole = i32::try_from(above.checked_div(below)?).ok()?;
    Some((whole, above.checked_rem(below)? == 0))
}

/// The quantity as so many of `unit`, rounded up.
pub(crate) fn count_up(text: &str, unit: u128) -> Option<i32> {
    let (whole, exact) = count(text, unit)?;
    whole.checked_add(i32::from(!exact))
}

/// Numerator and denominator.
fn fraction(text: &str) -> Option<(u128, u128)> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    let places = u32::try_from(part.len()).ok()?;
    let (above, below) = scale(unit)?;
    let above = digits.checked_mul(above)?;
    Some((above, below.checked_mul(10_u128.checked_pow(places)?)?))
}

/// What a unit or an exponent multiplies with and divides by.
fn scale(unit: &str) -> Option<(u128, u128)> {
    const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const SMALL: [&str; 3] = ["m", "u", "n"];
    let place = |units: &[&str]| {
        let index = units.iter().position(|one| *one == unit)?;
        u32::try_from(index).ok()
    };
    if let Some(power) = place(&DECIMAL) {
        return Some((1000_u128.checked_pow(power)?, 1));
    }
    if let Some(power) = place(&BINARY) {
        return Some((1024_u128.checked_pow(power + 1)?, 1));
    }
    if let Some(power) = place(&SMALL) {
        return Some((1, 1000_u128.checked_pow(power + 1)?));
    }
    let exponent: i32 = unit.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, power) } else { (power, 1) })
}

#[cfg(test)]
mod tests {
    use super::{MIB, count, count_up};

    #[test]
    fn quantities_are_counted_in_a_unit() {
        for (text, unit, down, up) in [
            ("2", 1, 2, 2),
            ("+2", 1, 2, 2),
            ("1500m", 1, 1, 2),
            ("2000m", 1, 2, 2),
            ("1e1", 1, 10, 10),
            ("5e-1", 1, 0, 1),
            (".5", 1, 0, 1),
            ("0", 1, 0, 0),
            ("2Gi", MIB, 2048, 2048),
            ("2G", MIB, 1907, 1908),
            ("1.5Gi", MIB, 1536, 1536),
            ("1Ti", MIB, 1_048_576, 1_048_576),
        ] {
            assert_eq!(count(text, unit), Some((down, down == up)), "{text}");
            assert_eq!(count_up(text, unit), Some(up), "{text}");
        }
        for text in ["", "-1", "many", "1Q", "1.2.3", "9E", "1e99"] {
            assert_eq!(count(text, 1), None, "{text}");
        }
    }
}
