//! Shortens hashes in texts.

/// Digits of a shortened sha256.
const SHORT_HASH: usize = 12;

/// Shortens every sha256 in a text.
pub fn short_hashes(text: &str) -> String {
    let shortened = |word: &str| {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let hash = bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        let start = bare.get(..SHORT_HASH).filter(|_| hash);
        start.map_or_else(|| word.to_owned(), |start| word.replace(bare, start))
    };
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(shortened)
        .collect()
}
