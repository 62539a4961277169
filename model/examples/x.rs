//! t
fn main() {
    for f in std::env::args().skip(1) {
        let s = std::fs::read_to_string(&f).unwrap();
        match model::read::read_documents(&f, &s) {
            Ok(d) => println!("{f}: OK {}", d.len()),
            Err(p) => println!("== {f}\n{}", model::read::render(&p)),
        }
    }
}
