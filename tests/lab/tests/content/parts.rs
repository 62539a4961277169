//! Parts of made-up content under their real names and versions: what does not need a build is tested without one.

use lab::content::build::{Built, Record};
use lab::content::debian::Debian;
use lab::content::kit::Kit;
use lab::content::modules::MODULES;
use lab::content::{lay_out, sources};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A laid-out folder.
pub struct Place(PathBuf);

impl Place {
    pub fn laid_out(parts: &Path, kit: &Kit) -> Self {
        let place = parts.join("served");
        lay_out(&place, kit).unwrap();
        Self(place)
    }

    pub fn catalog(&self) -> PathBuf {
        self.0.join("catalog.yaml")
    }

    pub fn mirror(&self) -> PathBuf {
        self.0.join("mirror")
    }

    pub fn registry(&self) -> PathBuf {
        self.0.join("registry")
    }
}

pub fn made_up(folder: &Path) -> Kit {
    let built = MODULES.iter().map(|module| {
        let own = folder.join(module.name);
        for binary in module.binaries {
            program(
                &own.join(binary.name),
                &format!("{} of {}", binary.name, module.name),
            );
        }
        Built {
            module,
            version: module.version(&sources()).unwrap(),
            key: "0".repeat(16),
            folder: own,
            record: Record::default(),
            cached: true,
        }
    });
    let built = built.collect();
    let root = folder.join("debian");
    for path in [
        "bin/busybox",
        "usr/sbin/runc",
        "usr/sbin/xtables-nft-multi",
        "usr/share/doc/x",
        "lib/libc.so.6",
    ] {
        program(&root.join(path), path);
    }
    symlink("xtables-nft-multi", root.join("usr/sbin/iptables-nft")).unwrap();
    let applets = vec!["cp".to_owned(), "sh".to_owned()];
    let debian = Debian {
        root,
        applets,
        key: "0".repeat(16),
    };
    Kit {
        built,
        debian,
        roots: Some("a certificate".to_owned()),
    }
}

fn program(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
