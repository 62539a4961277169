//! Every option of every command is in `docs/reference`, so that a change of one shows in review.

use crate::kctl::{Kctl, repository_folder};
use std::collections::BTreeMap;
use std::path::Path;

fn read_pages(dir: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|file| file.expect("a file").path());
    let text = |path: &Path| std::fs::read_to_string(path).expect("text");
    let name = |path: &Path| {
        path.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    files.map(|path| (name(&path), text(&path))).collect()
}

#[test]
fn the_reference_is_what_the_commands_say() {
    let kctl = Kctl::new();
    kctl.run(&["reference", "--out", "reference"])
        .expect_success();
    let (made, kept) = (
        read_pages(&kctl.home_path("reference")),
        read_pages(&repository_folder().join("docs/reference")),
    );
    assert!(made == kept, "run: kctl reference --out docs/reference");
}

#[test]
fn help_is_a_result_and_wrong_usage_is_not() {
    let kctl = Kctl::new();
    let help = kctl.run(&["--help"]);
    assert!(help.err.is_empty());
    insta::assert_snapshot!(help.expect_success());
    let wrong = kctl.run(&["update", "--hlp"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (2, ""));
    assert!(wrong.err.contains("--help"), "{}", wrong.err);
}

#[test]
fn shells_get_completions() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            Kctl::new()
                .run(&["completion", shell])
                .expect_success()
                .contains("instancegroup")
        );
    }
}
