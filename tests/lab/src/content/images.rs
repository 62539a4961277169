//! The images that the lab's registry serves, under their public names: which programs are in each, and what it starts.

use super::archive::Tree;
use super::debian;
use super::kit::Kit;
use super::oci::Image;
use anyhow::Result;
use std::rc::Rc;

/// The pause image's tag, which is also what the program says it is.
pub const PAUSE: &str = "3.10.1";

/// Tags of images whose version no module has: what flannel's and kOps' manifests name.
const CNI_FLANNEL: &str = "v1.9.1-flannel3";
const AUTOSCALER: &str = "v1.9.0";
const BUSYBOX: &str = "1.35.0";
const TEST: &str = "v1";

const KUBERNETES: &str = "registry.k8s.io";
const GITHUB: &str = "ghcr.io";

/// Kubernetes' own components, in the one binary that all of their images share as a layer.
pub const COMPONENTS: [&str; 5] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
];

/// Users of images that do not run as root, by their number in the public images.
const NOBODY: &str = "65535:65535";
const NONROOT: &str = "65532:65532";

const PASSWD: &str = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nnonroot:x:65532:\nnobody:x:65534:\n";

/// Names that Debian's packaging would give the nft variants.
const XTABLES: [&str; 8] = [
    "iptables",
    "iptables-save",
    "iptables-restore",
    "ip6tables",
    "ip6tables-save",
    "ip6tables-restore",
    "ebtables",
    "arptables",
];

/// Layers that several images have.
struct Layers {
    base: Rc<Tree>,
    kubernetes: Rc<Tree>,
    iptables: Rc<Tree>,
    busybox: Rc<Tree>,
}

/// All images.
pub fn images(kit: &Kit) -> Result<Vec<Image>> {
    let layers = Layers {
        base: Rc::new(base(kit)),
        kubernetes: Rc::new(kubernetes(kit)?),
        iptables: Rc::new(iptables(kit)?),
        busybox: Rc::new(busybox(kit)),
    };
    let mut images = control_plane(kit, &layers)?;
    images.extend(addons(kit, &layers)?);
    images.extend(network(kit, &layers)?);
    images.extend(for_tests(kit, &layers)?);
    Ok(images)
}

fn control_plane(kit: &Kit, layers: &Layers) -> Result<Vec<Image>> {
    let version = kit.version("kubernetes")?;
    let mut images = Vec::new();
    for component in [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
    ] {
        let mut stack = vec![layers.base.clone(), layers.kubernetes.clone()];
        if component == "kube-proxy" {
            stack.insert(1, layers.iptables.clone());
        }
        let entrypoint: &[&str] = &["/go-runner"];
        images.push(image(
            (KUBERNETES, component),
            format!("v{version}"),
            stack,
            entrypoint,
        ));
    }
    let etcd = Tree::default()
        .program("usr/local/bin/etcd", kit.program("etcd", "etcd")?)
        .program("usr/local/bin/etcdctl", kit.program("etcdctl", "etcdctl")?)
        .program("usr/local/bin/etcdutl", kit.program("etcdctl", "etcdutl")?);
    let tag = format!("{}-0", kit.version("etcd")?);
    images.push(image(
        (KUBERNETES, "etcd"),
        tag,
        vec![layers.base.clone(), Rc::new(etcd)],
        &[],
    ));
    let pause = Tree::default().program("pause", kit.program("small", "pause")?);
    let pause = image(
        (KUBERNETES, "pause"),
        PAUSE.to_owned(),
        vec![Rc::new(pause)],
        &["/pause"],
    );
    images.push(Image {
        user: NOBODY,
        ..pause
    });
    Ok(images)
}

fn addons(kit: &Kit, layers: &Layers) -> Result<Vec<Image>> {
    let with = |tree: Tree| vec![layers.base.clone(), Rc::new(tree)];
    let dns = Tree::default().low_port_program("coredns", kit.program("coredns", "coredns")?);
    let tag = format!("v{}", kit.version("coredns")?);
    let dns = image(
        (KUBERNETES, "coredns/coredns"),
        tag,
        with(dns),
        &["/coredns"],
    );
    let name = "cluster-proportional-autoscaler";
    let autoscaler = Tree::default().program(name, kit.program("autoscaler", name)?);
    let autoscaler = image(
        (KUBERNETES, "cpa/cluster-proportional-autoscaler"),
        AUTOSCALER.to_owned(),
        with(autoscaler),
        &["/cluster-proportional-autoscaler"],
    );
    let name = "aws-cloud-controller-manager";
    let cloud = Tree::default().program(
        "bin/aws-cloud-controller-manager",
        kit.program("cloud-provider", name)?,
    );
    let cloud = image(
        (KUBERNETES, "provider-aws/cloud-controller-manager"),
        format!("v{}", kit.version("cloud-provider")?),
        with(cloud),
        &["/bin/aws-cloud-controller-manager"],
    );
    Ok(vec![
        Image {
            user: NONROOT,
            ..dns
        },
        Image {
            user: NONROOT,
            ..autoscaler
        },
        cloud,
    ])
}

fn network(kit: &Kit, layers: &Layers) -> Result<Vec<Image>> {
    let flannel = Tree::default()
        .program("opt/bin/flanneld", kit.program("flannel", "flanneld")?)
        .program(
            "opt/bin/install-conf",
            kit.program("flannel", "install-conf")?,
        );
    let shell = [layers.base.clone(), layers.busybox.clone()];
    let mut stack = shell.to_vec();
    stack.extend([layers.iptables.clone(), Rc::new(flannel)]);
    let tag = format!("v{}", kit.version("flannel")?);
    let flannel = image(
        (GITHUB, "flannel-io/flannel"),
        tag,
        stack,
        &["/opt/bin/flanneld"],
    );
    // Its manifest copies the plugin out with cp.
    let plugin = Tree::default().program("flannel", kit.program("cni-flannel", "flannel")?);
    let mut stack = shell.to_vec();
    stack.push(Rc::new(plugin));
    let name = (GITHUB, "flannel-io/flannel-cni-plugin");
    Ok(vec![
        flannel,
        image(name, CNI_FLANNEL.to_owned(), stack, &[]),
    ])
}

fn for_tests(kit: &Kit, layers: &Layers) -> Result<Vec<Image>> {
    let shell = vec![layers.base.clone(), layers.busybox.clone()];
    let busybox = image(
        ("docker.io", "library/busybox"),
        BUSYBOX.to_owned(),
        shell.clone(),
        &[],
    );
    let web = Tree::default().program("web", kit.program("small", "web")?);
    let mut stack = shell;
    stack.push(Rc::new(web));
    let web = image((GITHUB, "kctl/lab-test"), TEST.to_owned(), stack, &["/web"]);
    Ok(vec![busybox, web])
}

fn image(
    (host, repository): (&'static str, &'static str),
    tag: String,
    layers: Vec<Rc<Tree>>,
    entrypoint: &'static [&'static str],
) -> Image {
    Image {
        host,
        repository,
        tag,
        layers,
        entrypoint,
        user: "",
    }
}

/// Users, a place for temporary files, whom to trust.
fn base(kit: &Kit) -> Tree {
    let tree = Tree::default()
        .text("etc/passwd", PASSWD)
        .text("etc/group", GROUP)
        .text("etc/nsswitch.conf", "hosts: files dns\n")
        .folder("root", 0o700)
        .folder("tmp", 0o1777)
        .folder("var/tmp", 0o1777);
    match &kit.roots {
        Some(roots) => tree.text("etc/ssl/certs/ca-certificates.crt", roots),
        None => tree,
    }
}

/// The one binary under all its names, and the runner that the static pods start it with.
fn kubernetes(kit: &Kit) -> Result<Tree> {
    let mut tree = Tree::default().program("go-runner", kit.program("kubernetes", "go-runner")?);
    let mut names = COMPONENTS
        .iter()
        .map(|name| format!("usr/local/bin/{name}"));
    let first = names.next().unwrap_or_default();
    tree = tree.program(&first, kit.program("kubernetes", "kubernetes")?);
    Ok(names.fold(tree, |tree, name| tree.link(&name, &first)))
}

fn iptables(kit: &Kit) -> Result<Tree> {
    let wanted = |path: &str| {
        let others = ["usr/sbin/runc", "bin/busybox"];
        debian::served(path) && !others.contains(&path)
    };
    let tree = Tree::default().import(&kit.debian.root, wanted)?;
    Ok(XTABLES.iter().fold(tree, |tree, name| {
        tree.symlink(&format!("usr/sbin/{name}"), "xtables-nft-multi")
    }))
}

fn busybox(kit: &Kit) -> Tree {
    let tree = Tree::default().program("bin/busybox", kit.debian.root.join("bin/busybox"));
    kit.debian.applets.iter().fold(tree, |tree, applet| {
        tree.symlink(&format!("bin/{applet}"), "busybox")
    })
}
