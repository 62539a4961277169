//! "Did you mean": the known name nearest to a misspelt one.

/// The known name that was probably meant, if one is near enough.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let all = like_names(name, known).into_iter();
    let nearest = all.max_by(|left, right| left.0.total_cmp(&right.0));
    nearest.map(|(_, candidate)| candidate)
}

/// All known names that resemble one, the nearest first.
pub fn nearest_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = like_names(name, known);
    all.sort_by(|left, right| right.0.total_cmp(&left.0));
    all.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The known names that are near enough, each with its likeness.
fn like_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<(f64, &'a str)> {
    // Comparing takes the product of both lengths; no known name is nearly as long.
    const LONGEST: usize = 100;
    let wanted = name.to_lowercase();
    if wanted.len() > LONGEST {
        return Vec::new();
    }
    known
        .into_iter()
        .map(|candidate| (likeness(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score > 0.0)
        .collect()
}

/// 0 for names too far apart, otherwise more for nearer ones.
fn likeness(wanted: &str, candidate: &str) -> f64 {
    let length = wanted.chars().count().max(candidate.chars().count());
    // One letter of a short word or a third of a long one may be wrong.
    let allowed = (length / 3).max(1);
    let edits = strsim::damerau_levenshtein(wanted, candidate);
    if edits <= allowed {
        return strsim::normalized_damerau_levenshtein(wanted, candidate)
            + strsim::jaro_winkler(wanted, candidate);
    }
    // A part of the name alone: `replicas` for `typhaReplicas`.
    let part = wanted.len() >= 4
        && (candidate.contains(wanted) || wanted.contains(candidate) && candidate.len() >= 4);
    if part {
        strsim::jaro_winkler(wanted, candidate) / 2.0
    } else {
        0.0
    }
}

/// The hint for a name that is not known: the nearest one, or all there are.
pub fn hint<'a>(name: &str, known: &[&'a str]) -> String {
    const LISTED: usize = 16;
    if let Some(near) = nearest_name(name, known.iter().copied()) {
        return format!("did you mean \"{near}\"?");
    }
    if known.is_empty() {
        return "there are none here: remove it, or add what it names first".to_owned();
    }
    let mut names: Vec<&'a str> = known.to_vec();
    names.sort_unstable();
    let listed = names
        .iter()
        .take(LISTED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let more = names.len().saturating_sub(LISTED);
    if more > 0 {
        format!("known here: {listed} and {more} more")
    } else {
        format!("known here: {listed}")
    }
}

/// The hint for a value that is not one of a few, which the message has named.
pub fn choice_hint(value: &str, choices: &[&str]) -> String {
    nearest_name(value, choices.iter().copied()).map_or_else(
        || "use one of these values".to_owned(),
        |near| format!("did you mean \"{near}\"?"),
    )
}

#[cfg(test)]
mod tests {
    use super::{hint, nearest_name};

    const KNOWN: [&str; 5] = [
        "cidr",
        "networkCIDR",
        "networkID",
        "zone",
        "additionalNetworkCIDRs",
    ];

    #[test]
    fn slips_of_the_pen_and_of_the_shift_key_are_found() {
        for (typo, meant) in [
            ("cird", "cidr"),
            ("networkCidr", "networkCIDR"),
            ("networkId", "networkID"),
            ("zones", "zone"),
        ] {
            assert_eq!(nearest_name(typo, KNOWN), Some(meant));
        }
    }

    #[test]
    fn a_name_that_resembles_nothing_gets_the_list() {
        assert_eq!(nearest_name("banana", KNOWN), None);
        assert_eq!(nearest_name("nope", ["ntp", "zone"]), None);
        assert_eq!(hint("banana", &["b", "a"]), "known here: a, b");
    }
}
