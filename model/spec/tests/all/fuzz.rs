//! The laws that libFuzzer tries for hours (`make soak`, tests/fuzz), on what they begin with and some thousand changes of it.
#[path = "../../../../tests/fuzz/src/lib.rs"]
mod laws;

use laws::TARGETS;
use laws::seeds::{seeds, words};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{TestError, TestRunner};
use std::collections::BTreeMap;
use std::path::Path;

fn all_seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let model = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    seeds(&Path::new(&model).join("../.."))
}

/// A stretch of a seed replaced by a word, some bytes, or a stretch of another seed.
fn fuzz_input(seeds: Vec<Vec<u8>>, words: Vec<String>) -> impl Strategy<Value = Vec<u8>> {
    let others = prop::sample::select(seeds.clone());
    let piece = prop_oneof![
        prop::sample::select(words).prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..12),
        "[0-9]{1,24}".prop_map(String::into_bytes),
        (others, any::<Index>(), any::<Index>()).prop_map(|(other, a, b)| {
            let (a, b) = (a.index(other.len() + 1), b.index(other.len() + 1));
            other[a.min(b)..a.max(b)].to_vec()
        }),
    ];
    let edit = (any::<Index>(), 0_usize..24, piece);
    let edits = prop::collection::vec(edit, 0..4);
    (prop::sample::select(seeds), edits).prop_map(|(mut bytes, edits)| {
        for (start, length, piece) in edits {
            let start = start.index(bytes.len() + 1);
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, piece);
        }
        bytes
    })
}

/// Tries the law on at most `first` of the seeds, spread over all of them, and on so many changes of seeds.
fn assert_law(name: &str, first: usize, cases: u32) {
    let (_, law) = TARGETS.iter().find(|(of, _)| *of == name).unwrap();
    let seeds = all_seeds().remove(name).unwrap();
    assert!(
        seeds.len() >= 5,
        "{name} begins with {} inputs",
        seeds.len()
    );
    let step = seeds.len().div_ceil(first);
    seeds.iter().step_by(step).for_each(|seed| law(seed));
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 64,
        ..ProptestConfig::default()
    };
    let words = words().into_iter().collect();
    let tried = TestRunner::new(config).run(&fuzz_input(seeds, words), |bytes| {
        let broken = std::panic::catch_unwind(|| law(&bytes)).is_err();
        prop_assert!(!broken);
        Ok(())
    });
    match tried {
        Err(TestError::Fail(_, input)) => panic!("broken by {:?}", String::from_utf8_lossy(&input)),
        other => other.unwrap_or_else(|error| panic!("{error}")),
    }
}

#[test]
fn spec_files() {
    assert_law("read", 100, 1000);
}

#[test]
fn what_follows_from_specs() {
    assert_law("expand", 120, 150);
}

#[test]
fn configurations_of_machines() {
    assert_law("node_config", 100, 600);
}

#[test]
fn saved_plans() {
    assert_law("plan", 200, 3000);
}

#[test]
fn address_ranges() {
    assert_law("cidr", 100, 3000);
}

#[test]
fn messages_of_machines() {
    assert_law("messages", 100, 3000);
}

/// For libFuzzer: inputs in `KCTL_FUZZ_SEEDS/TARGET/`, words of texts in `KCTL_FUZZ_SEEDS/words`.
#[test]
#[ignore = "writes into the folder KCTL_FUZZ_SEEDS, for tests/fuzz/run"]
fn seeds_are_written() {
    let folder = std::env::var("KCTL_FUZZ_SEEDS").unwrap();
    let folder = Path::new(&folder);
    for (target, inputs) in all_seeds() {
        let folder = folder.join(target);
        std::fs::create_dir_all(&folder).unwrap();
        for (index, input) in inputs.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{index:04}")), input).unwrap();
        }
    }
    let words = words();
    let escaped = words.iter().map(|word| {
        let bytes = word.bytes().map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        });
        format!("\"{}\"\n", bytes.collect::<String>())
    });
    std::fs::write(folder.join("words"), escaped.collect::<String>()).unwrap();
}

proptest! {
    /// Policies of users have such numbers: one that came back as its neighbour would be a change for ever.
    #[test]
    fn a_number_in_json_is_read_as_it_was_written(number in prop::num::f64::NORMAL) {
        let text = serde_json::to_string(&number).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(document.as_f64(), Some(number));
        prop_assert_eq!(document.to_string(), text);
    }
}
