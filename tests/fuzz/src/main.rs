//! `seeds FOLDER`: writes what each target begins with into `FOLDER/TARGET/`, and the words of texts into `FOLDER/words`.

use std::io::{Error, Result};
use std::path::Path;

fn main() -> Result<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or_else(|| Error::other("give a folder"))?;
    let folder = Path::new(&folder);
    for (target, inputs) in fuzz::seeds::seeds(Path::new(".")) {
        let folder = folder.join(target);
        std::fs::create_dir_all(&folder)?;
        for (index, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{index:04}")), input)?;
        }
    }
    let words = fuzz::seeds::words();
    let escaped = words.iter().map(|word| {
        let bytes = word.bytes().map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        });
        format!("\"{}\"\n", bytes.collect::<String>())
    });
    std::fs::write(folder.join("words"), escaped.collect::<String>())
}
