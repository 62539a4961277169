//! Fake programs of a test instance. They keep state in files, as far as nodeup reads it.

use std::fs;
use std::path::Path;
use test_support::write_script;

const SYSTEMCTL: &str = r#"
units=$FAKES/units; mkdir -p "$units"
case $1 in
show)
    shift 2
    for unit; do
        active=inactive; file=disabled
        [ -e "$units/$unit.active" ] && active=active
        [ -e "$units/$unit.activating" ] && active=activating
        [ -e "$units/$unit.enabled" ] && file=enabled
        printf 'Id=%s\nType=simple\nActiveState=%s\nSubState=x\nUnitFileState=%s\nResult=success\nJob=0\n\n' "$unit" $active $file
    done ;;
enable) touch "$units/$2.enabled" ;;
restart) echo "$3" >>"$FAKES/started"; touch "$units/$3.active" ;;
stop) rm -f "$units/$2.active" ;;
esac
"#;

const DPKG_QUERY: &str = r#"
[ ! -e "$FAKES/packages" ] || while read -r name; do echo "$name|installed|"; done <"$FAKES/packages"
"#;

const APT_GET: &str = r#"
[ "$1" = install ] || exit 0
mkdir -p "$ROOT/usr/bin"
for word; do
    case $word in
    install | -* | *::*) ;;
    *) echo "$word" >>"$FAKES/packages"
       [ "$word" != socat ] || { echo socat >"$ROOT/usr/bin/socat"; chmod 755 "$ROOT/usr/bin/socat"; } ;;
    esac
done
"#;

/// Fails with libraries of the image.
const MODPROBE: &str = r#"[ -z "${LD_LIBRARY_PATH:-}" ] && mkdir -p "$ROOT/sys/module/$1""#;

const CRICTL: &str = r#"
case $2 in
*/missing:*) echo 'not found' >&2; exit 1 ;;
*/slow:*) exec sleep 600 ;;
*) echo "$2" >>"$FAKES/pulled" ;;
esac
"#;

/// Images are files with a digest and labels. An archive is a line with its image's name and digest.
const CTR: &str = r#"
[ -e "$FAKES/units/containerd.service.active" ] || { echo 'failed to dial' >&2; exit 1; }
mkdir -p "$FAKES/images"
file_of() { echo "$FAKES/images/$(echo "$1" | tr / _)"; }
shift 3
case $1 in
list)
    echo 'REF TYPE DIGEST SIZE PLATFORMS LABELS'
    name=${2#name==}; file=$(file_of "$name")
    [ ! -e "$file" ] || echo "$name application/vnd.oci.image.index.v1+json $(cat "$file")" ;;
import)
    read -r name digest <"$4"
    echo "$digest 1 MiB linux/amd64 -" >"$(file_of "$name")"
    echo "import $name" >>"$FAKES/started" ;;
label) sed -i "s, -\$, $3," "$(file_of "$2")" ;;
esac
"#;

/// Writes the programs into a folder.
pub fn install_programs(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let programs = [
        ("systemctl", SYSTEMCTL),
        ("dpkg-query", DPKG_QUERY),
        ("dpkg", ""),
        ("apt-get", APT_GET),
        ("modprobe", MODPROBE),
        ("crictl", CRICTL),
        ("ctr", CTR),
    ];
    for (name, text) in programs {
        write_script(&folder.join(name), &format!("set -eu\n{text}"));
    }
}
