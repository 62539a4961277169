//! The images of Kubernetes' conformance tests, under their names and tags in Kubernetes' own list: its programs from its module, the rest
//! from Debian. Images of that list that no conformance test uses are left out.

use super::{E2E_IMAGES, GROUP, KUBERNETES, Layers, PASSWD, etcd_image, new_image, pause_image};
use crate::content::archive::Tree;
use crate::content::build::BuiltModule;
use crate::content::debian::{self, Debian};
use crate::content::kit::ContentKit;
use crate::content::oci::Image;
use anyhow::{Context, Result};
use std::fs;
use std::rc::Rc;

/// A user in a group that only agnhost's image knows: a test asks for both.
const USER: &str = "user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n";
const GROUPS: &str =
    "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n";

/// The test of image volumes reads this of kitten.
const OS_RELEASE: &str = "NAME=\"Alpine Linux\"\n";

const NGINX: &str = "\
user root root;
daemon off;
error_log stderr;
pid /tmp/nginx.pid;
events {}
http {
    access_log off;
    server {
        listen 80;
        location / { return 200 nginx; }
    }
}
";

macro_rules! e2e {
    ($name:literal) => {
        concat!("e2e-test-images/", $name)
    };
}

/// What of the C library busybox and bash need, by the beginning of names.
const LIBRARIES: [&str; 5] = [
    "ld-linux",
    "libc.so",
    "libnss_",
    "libresolv.so",
    "libtinfo.so",
];

pub(super) fn test_images(
    kit: &ContentKit,
    debian: &Debian,
    layers: &Layers,
) -> Result<Vec<Image>> {
    let built = kit.find_module("conformance")?;
    let list = built.program_path(E2E_IMAGES);
    let list = fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let base = [layers.base.clone()];
    let shell = above(&base, shell_layer(debian)?);
    let tools = above(&shell, tools_layer(debian)?);
    let name = "sample-apiserver";
    let sample = Tree::default().add_program(name, built.program_path(name));
    let nnp = Tree::default().setuid_program("usr/local/bin/nnp", built.program_path("nnp"));
    let mut images = agnhost_images(&list, built, &tools)?;
    images.extend([
        Image {
            entrypoint: &["/sample-apiserver"],
            ..listed_image(
                &list,
                "APIServer",
                e2e!("sample-apiserver"),
                above(&base, sample),
            )?
        },
        Image {
            command: &["sh"],
            ..listed_image(&list, "BusyBox", e2e!("busybox"), shell)?
        },
        Image {
            entrypoint: &["/usr/sbin/nginx"],
            ..listed_image(&list, "Nginx", e2e!("nginx"), above(&tools, nginx_layer()))?
        },
        Image {
            command: &["nnp"],
            ..listed_image(&list, "Nonewprivs", e2e!("nonewprivs"), above(&base, nnp))?
        },
        Image {
            command: &["bash"],
            ..listed_image(&list, "GlibcDnsTesting", e2e!("glibc-dns-testing"), tools)?
        },
        Image {
            tag: find_tag(&list, "Etcd")?,
            ..etcd_image(kit, ("etcd", "etcdctl"), layers)?
        },
        pause_image(kit, find_tag(&list, "Pause")?)?,
    ]);
    Ok(images)
}

/// agnhost in both versions, and the two images that are agnhost with a picture.
fn agnhost_images(list: &str, built: &BuiltModule, tools: &[Rc<Tree>]) -> Result<Vec<Image>> {
    let agnhost = above(tools, agnhost_layer(built)?);
    let picture = |name: &str| {
        let folder = built.program_path(&format!("test/images/{name}/html"));
        Tree::default().import_folder(&folder, |_| true)
    };
    let kitten = picture("kitten")?.add_text("etc/os-release", OS_RELEASE);
    // A file of its own makes each version an image of its own: containerd knows images by their content.
    let version = |text: &str| Tree::default().add_text("VERSION", text);
    let mut images = Vec::new();
    for (id, repository, tree, command) in [
        ("Agnhost", e2e!("agnhost"), version("current"), &["pause"]),
        (
            "AgnhostPrev",
            e2e!("agnhost"),
            version("previous"),
            &["pause"],
        ),
        ("Kitten", e2e!("kitten"), kitten, &["test-webserver"]),
        (
            "Nautilus",
            e2e!("nautilus"),
            picture("nautilus")?,
            &["test-webserver"],
        ),
    ] {
        images.push(Image {
            entrypoint: &["/agnhost"],
            command,
            ..listed_image(list, id, repository, above(&agnhost, tree))?
        });
    }
    Ok(images)
}

/// An image with the tag that the list has for it.
fn listed_image(
    list: &str,
    id: &str,
    repository: &'static str,
    layers: Vec<Rc<Tree>>,
) -> Result<Image> {
    let tag = find_tag(list, id)?;
    Ok(new_image((KUBERNETES, repository), tag, layers, &[]))
}

/// The tag of an image in the list, which has lines like `configs[BusyBox] = Config{list.PromoterE2eRegistry, "busybox", "1.37.0-1"}`.
fn find_tag(list: &str, id: &str) -> Result<String> {
    let begin = format!("configs[{id}] = ");
    let line = list.lines().find(|line| line.trim().starts_with(&begin));
    let tag = line.and_then(|line| line.rsplit('"').nth(1));
    tag.map(str::to_owned)
        .with_context(|| format!("{E2E_IMAGES} has no {id}"))
}

fn above(below: &[Rc<Tree>], tree: Tree) -> Vec<Rc<Tree>> {
    [below, &[Rc::new(tree)]].concat()
}

/// The shell. Debian reverts busybox' commit 9c143ce52da11ec3d21a3491c3749841d3dc10f0, so that its own drops variables whose names a shell
/// cannot have. A test wants `data-1`, and another one the words of busybox' shell for a file that cannot be written.
const SH: &str = r#"#!/bin/bash
mapfile -d "" variables </proc/$$/environ
for one in "${variables[@]}"; do
  [[ $one =~ ^[A-Za-z_][A-Za-z0-9_]*= ]] || exec -a "$0" /bin/bash "$@"
done
exec -a "$0" /bin/busybox "$@"
"#;

/// busybox with the C library, so that it resolves names.
fn shell_layer(debian: &Debian) -> Result<Tree> {
    let tree = Tree::default().import_folder(&debian.root, is_of_shell)?;
    let applets = debian.applets.iter().filter(|applet| *applet != "sh");
    let tree = applets.fold(tree, |tree, applet| {
        tree.add_symlink(&format!("bin/{applet}"), "busybox")
    });
    Ok(tree.add_script("bin/sh", SH))
}

fn is_of_shell(path: &str) -> bool {
    let library = path.strip_prefix("lib/x86_64-linux-gnu/");
    ["bin/bash", "bin/busybox"].contains(&path)
        || path.starts_with("lib64/")
        || library.is_some_and(|name| LIBRARIES.iter().any(|start| name.starts_with(start)))
}

/// Everything else of the packages but Perl, which only their installation needs. Installing makes the link of nc.
fn tools_layer(debian: &Debian) -> Result<Tree> {
    let wanted =
        |path: &str| debian::is_served(path) && !is_of_shell(path) && !path.contains("/perl");
    let tree = Tree::default().import_folder(&debian.root, wanted)?;
    Ok(tree.add_symlink("bin/nc", "nc.openbsd"))
}

/// agnhost with its second name and what it serves.
fn agnhost_layer(built: &BuiltModule) -> Result<Tree> {
    let porter = built.program_path("test/images/agnhost/porter");
    let tree = Tree::default().import_folder(&porter, |_| true)?;
    Ok(tree
        .add_program("agnhost", built.program_path("agnhost"))
        .add_symlink("agnhost-2", "agnhost")
        .add_folder("uploads", 0o755)
        .add_text("etc/passwd", &format!("{PASSWD}{USER}"))
        .add_text("etc/group", &format!("{GROUP}{GROUPS}")))
}

fn nginx_layer() -> Tree {
    Tree::default()
        .add_text("etc/nginx/nginx.conf", NGINX)
        .add_folder("var/lib/nginx", 0o755)
        .add_folder("var/log/nginx", 0o755)
}

#[cfg(test)]
mod tests {
    use super::find_tag;

    #[test]
    fn a_tag_is_found_by_the_whole_id() {
        let list = "\tconfigs[AgnhostPrev] = Config{list.PromoterE2eRegistry, \"agnhost\", \"2.55\"}\n\
                    \tconfigs[Agnhost] = Config{list.PromoterE2eRegistry, \"agnhost\", \"2.63.0\"}\n";
        assert_eq!(find_tag(list, "Agnhost").unwrap(), "2.63.0");
        assert_eq!(find_tag(list, "AgnhostPrev").unwrap(), "2.55");
        assert!(find_tag(list, "Pause").is_err());
    }
}
