//! The images that the lab's registry serves, under their public names: which programs are in each, and what it starts.

mod conformance;

use super::archive::Tree;
use super::build::BuiltModule;
use super::debian::{self, Debian};
use super::kit::ContentKit;
use super::oci::Image;
use anyhow::Result;
use std::rc::Rc;

/// The pause image's tag, which is also what the program says it is.
pub const PAUSE: &str = "3.10.1";

/// Kubernetes' own list of the images of its tests, in its module.
pub const E2E_IMAGES: &str = "test/utils/image/manifest.go";

/// Tags of images whose version no module has: what flannel's, kOps' and the EBS CSI driver's manifests name.
const CNI_FLANNEL: &str = "v1.9.1-flannel3";
const AUTOSCALER: &str = "v1.9.0";
const BUSYBOX: &str = "1.35.0";
const TEST: &str = "v1";
const EBS_DRIVER: &str = "v1.58.0";
const AUTHENTICATOR: &str = "v0.6.20-eks-1-30-7";

/// CSI's sidecars that are built from their modules, with the tags of the manifest.
const SIDECARS: [(&str, &str, [&str; 1]); 3] = [
    (
        "sig-storage/csi-provisioner",
        "v6.2.0",
        ["/csi-provisioner"],
    ),
    ("sig-storage/csi-attacher", "v4.11.0", ["/csi-attacher"]),
    ("sig-storage/csi-resizer", "v2.1.0", ["/csi-resizer"]),
];

/// Those that the stand-in is, with what it is called as.
const STAND_INS: [(&str, &str, [&str; 2]); 2] = [
    (
        "sig-storage/csi-node-driver-registrar",
        "v2.16.0",
        ["/bin/aws-ebs-csi-driver", "registrar"],
    ),
    (
        "sig-storage/livenessprobe",
        "v2.18.0",
        ["/bin/aws-ebs-csi-driver", "livenessprobe"],
    ),
];

/// What the jobs of helm-controller run.
const KLIPPER: &str = "v0.13.2-build20260716";
const KLIPPER_ENTRY: &str = include_str!("../../content/helm/entry");

/// The scripts of cilium's init containers and of its end, in the upstream module.
const CILIUM_SCRIPTS: [&str; 3] = [
    "images/cilium/init-container.sh",
    "plugins/cilium-cni/cni-uninstall.sh",
    "plugins/cilium-cni/install-plugin.sh",
];

const DOCKER: &str = "docker.io";
const KUBERNETES: &str = "registry.k8s.io";
const GITHUB: &str = "ghcr.io";
const QUAY: &str = "quay.io";
const AMAZON: &str = "public.ecr.aws";

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
    debian: Rc<Tree>,
    busybox: Rc<Tree>,
}

/// Returns all container images that the lab serves.
pub fn all_images(kit: &ContentKit) -> Result<Vec<Image>> {
    let layers = Layers {
        base: Rc::new(base_layer(kit)),
        debian: Rc::new(debian_layer(kit)?),
        busybox: Rc::new(busybox_layer(kit)),
    };
    let mut images: Vec<Image> = kit
        .kubernetes_builds()
        .flat_map(|kubernetes| kubernetes_images(kubernetes, &layers))
        .collect();
    images.extend(control_plane(kit, &layers)?);
    images.extend(addon_images(kit, &layers)?);
    images.extend(volume_images(kit, &layers)?);
    images.extend(network_images(kit, &layers)?);
    if kit.module_version("helm").is_ok() {
        images.extend(chart_images(kit, &layers)?);
    }
    if let Some(debian) = &kit.cilium {
        images.extend(cilium_images(kit, debian, &layers)?);
    }
    if let Some(debian) = &kit.conformance {
        images.extend(conformance::test_images(kit, debian, &layers)?);
    }
    images.extend(for_tests(kit, &layers)?);
    Ok(images)
}

/// The components of one build, which share a layer.
fn kubernetes_images(kubernetes: &BuiltModule, layers: &Layers) -> Vec<Image> {
    let layer = Rc::new(kubernetes_layer(kubernetes));
    let components = COMPONENTS.iter().filter(|name| **name != "kubelet");
    components
        .map(|component| {
            let mut stack = vec![layers.base.clone(), layer.clone()];
            if *component == "kube-proxy" {
                stack.insert(1, layers.debian.clone());
            }
            let tag = format!("v{}", kubernetes.version);
            new_image((KUBERNETES, component), tag, stack, &["/go-runner"])
        })
        .collect()
}

fn control_plane(kit: &ContentKit, layers: &Layers) -> Result<Vec<Image>> {
    let mut images = vec![etcd_image(kit, ("etcd", "etcdctl"), layers)?];
    for other in [
        ("etcd-previous", "etcdctl-previous"),
        ("etcd-next", "etcdctl-next"),
    ] {
        if kit.module_version(other.0).is_ok() {
            images.push(etcd_image(kit, other, layers)?);
        }
    }
    images.push(pause_image(kit, PAUSE.to_owned())?);
    Ok(images)
}

fn pause_image(kit: &ContentKit, tag: String) -> Result<Image> {
    let pause = Tree::default().add_program("pause", kit.program_path("small", "pause")?);
    let stack = vec![Rc::new(pause)];
    let pause = new_image((KUBERNETES, "pause"), tag, stack, &["/pause"]);
    Ok(Image {
        user: NOBODY,
        ..pause
    })
}

/// etcd and its tools of these modules.
fn etcd_image(kit: &ContentKit, (etcd, tools): (&str, &str), layers: &Layers) -> Result<Image> {
    let tree = Tree::default()
        .add_program("usr/local/bin/etcd", kit.program_path(etcd, "etcd")?)
        .add_program("usr/local/bin/etcdctl", kit.program_path(tools, "etcdctl")?)
        .add_program("usr/local/bin/etcdutl", kit.program_path(tools, "etcdutl")?);
    let tag = format!("v{}", kit.module_version(etcd)?);
    let stack = vec![layers.base.clone(), Rc::new(tree)];
    Ok(new_image((KUBERNETES, "etcd"), tag, stack, &[]))
}

fn addon_images(kit: &ContentKit, layers: &Layers) -> Result<Vec<Image>> {
    let with = |tree: Tree| vec![layers.base.clone(), Rc::new(tree)];
    let dns = Tree::default().low_port_program("coredns", kit.program_path("coredns", "coredns")?);
    let tag = format!("v{}", kit.module_version("coredns")?);
    let dns = new_image(
        (KUBERNETES, "coredns/coredns"),
        tag,
        with(dns),
        &["/coredns"],
    );
    let name = "cluster-proportional-autoscaler";
    let autoscaler = Tree::default().add_program(name, kit.program_path("autoscaler", name)?);
    let autoscaler = new_image(
        (KUBERNETES, "cpa/cluster-proportional-autoscaler"),
        AUTOSCALER.to_owned(),
        with(autoscaler),
        &["/cluster-proportional-autoscaler"],
    );
    let mut images = vec![
        Image {
            user: NONROOT,
            ..dns
        },
        Image {
            user: NONROOT,
            ..autoscaler
        },
        cloud_controller_manager(kit, "cloud-provider", layers)?,
    ];
    let next = "cloud-provider-next";
    if kit.module_version(next).is_ok() {
        images.push(cloud_controller_manager(kit, next, layers)?);
    }
    let name = "metrics-server";
    if let Ok(version) = kit.module_version(name) {
        let tree = Tree::default().add_program(name, kit.program_path(name, name)?);
        let name = (KUBERNETES, "metrics-server/metrics-server");
        let server = new_image(
            name,
            format!("v{version}"),
            with(tree),
            &["/metrics-server"],
        );
        images.push(Image {
            user: NONROOT,
            ..server
        });
    }
    let name = "aws-iam-authenticator";
    if kit.module_version(name).is_ok() {
        let tree = Tree::default().add_program(name, kit.program_path(name, name)?);
        images.push(new_image(
            (AMAZON, "eks-distro/kubernetes-sigs/aws-iam-authenticator"),
            AUTHENTICATOR.to_owned(),
            with(tree),
            &["/aws-iam-authenticator"],
        ));
    }
    Ok(images)
}

/// The AWS cloud controller manager of this module.
fn cloud_controller_manager(kit: &ContentKit, module: &str, layers: &Layers) -> Result<Image> {
    let name = "aws-cloud-controller-manager";
    let program = kit.program_path(module, name)?;
    let tree = Tree::default().add_program(&format!("bin/{name}"), program);
    Ok(new_image(
        (KUBERNETES, "provider-aws/cloud-controller-manager"),
        format!("v{}", kit.module_version(module)?),
        vec![layers.base.clone(), Rc::new(tree)],
        &["/bin/aws-cloud-controller-manager"],
    ))
}

/// The EBS CSI driver's pods: the sidecars, each with one program, and those that share the stand-in's layer.
fn volume_images(kit: &ContentKit, layers: &Layers) -> Result<Vec<Image>> {
    let mut images = Vec::new();
    for (repository, tag, entrypoint) in &SIDECARS {
        let name = entrypoint[0].trim_start_matches('/');
        let tree = Tree::default().add_program(name, kit.program_path("csi", name)?);
        let stack = vec![layers.base.clone(), Rc::new(tree)];
        images.push(new_image(
            (KUBERNETES, repository),
            (*tag).to_owned(),
            stack,
            entrypoint,
        ));
    }
    let stand_ins = kit.program_path("csi", "csi-stand-ins")?;
    let tree = Tree::default().add_program("bin/aws-ebs-csi-driver", stand_ins);
    let stack = vec![layers.base.clone(), layers.debian.clone(), Rc::new(tree)];
    let name = (KUBERNETES, "provider-aws/aws-ebs-csi-driver");
    let entrypoint = &["/bin/aws-ebs-csi-driver"];
    images.push(new_image(
        name,
        EBS_DRIVER.to_owned(),
        stack.clone(),
        entrypoint,
    ));
    for (repository, tag, entrypoint) in &STAND_INS {
        let name = (KUBERNETES, *repository);
        images.push(new_image(
            name,
            (*tag).to_owned(),
            stack.clone(),
            entrypoint,
        ));
    }
    Ok(images)
}

fn network_images(kit: &ContentKit, layers: &Layers) -> Result<Vec<Image>> {
    let flannel = Tree::default()
        .add_program("opt/bin/flanneld", kit.program_path("flannel", "flanneld")?)
        .add_program(
            "opt/bin/install-conf",
            kit.program_path("flannel", "install-conf")?,
        );
    let shell = [layers.base.clone(), layers.busybox.clone()];
    let mut stack = shell.to_vec();
    stack.extend([layers.debian.clone(), Rc::new(flannel)]);
    let tag = format!("v{}", kit.module_version("flannel")?);
    let flannel = new_image(
        (GITHUB, "flannel-io/flannel"),
        tag,
        stack,
        &["/opt/bin/flanneld"],
    );
    // Its manifest copies the plugin out with cp.
    let plugin =
        Tree::default().add_program("flannel", kit.program_path("cni-flannel", "flannel")?);
    let mut stack = shell.to_vec();
    stack.push(Rc::new(plugin));
    let name = (GITHUB, "flannel-io/flannel-cni-plugin");
    Ok(vec![
        flannel,
        new_image(name, CNI_FLANNEL.to_owned(), stack, &[]),
    ])
}

/// cilium's agent with what it runs, and its operator. Both have the minor version that is served.
fn cilium_images(kit: &ContentKit, debian: &Debian, layers: &Layers) -> Result<Vec<Image>> {
    let built = kit.find_module("cilium")?;
    let tag = format!("v{}", built.version);
    let mut agent = Tree::default();
    for name in ["agent", "dbg", "health-responder", "mount", "sysctlfix"] {
        let name = format!("cilium-{name}");
        agent = agent.add_program(&format!("usr/bin/{name}"), built.program_path(&name));
    }
    agent = agent
        .add_program("opt/cni/bin/cilium-cni", built.program_path("cilium-cni"))
        .add_program("cni/loopback", kit.program_path("cni", "loopback")?);
    for script in CILIUM_SCRIPTS {
        let (_, name) = script.rsplit_once('/').unwrap_or_default();
        agent = agent.add_program(name, built.program_path(script));
    }
    let sources = Tree::default().import_folder(&built.program_path("bpf"), |_| true)?;
    let stack = vec![
        layers.base.clone(),
        Rc::new(cilium_runtime(debian)?),
        Rc::new(sources.below("var/lib/cilium/bpf")),
        Rc::new(agent),
    ];
    let name = "cilium-operator";
    let operator =
        Tree::default().add_program(&format!("usr/bin/{name}"), built.program_path(name));
    let operator_stack = vec![layers.base.clone(), Rc::new(operator)];
    Ok(vec![
        new_image((QUAY, "cilium/cilium"), tag.clone(), stack, &[]),
        new_image(
            (QUAY, "cilium/operator"),
            tag,
            operator_stack,
            &["/usr/bin/cilium-operator"],
        ),
    ])
}

/// clang without what only other targets and other compilers need, and the programs of the agent; busybox is what is missing then.
fn cilium_runtime(debian: &Debian) -> Result<Tree> {
    let wanted = |path: &str| {
        let others = [
            "/gcc/",
            "/include/",
            "/cmake/",
            "/llvm-19/share/",
            "/python3",
        ];
        let static_code = matches!(path.rsplit_once('.'), Some((_, "a" | "o")));
        debian::is_served(path) && !static_code && !others.iter().any(|part| path.contains(part))
    };
    let tree = Tree::default()
        .import_folder(&debian.root, wanted)?
        .add_symlink("usr/bin/clang", "../lib/llvm-19/bin/clang");
    let tree = XTABLES.iter().fold(tree, |tree, name| {
        tree.add_symlink(&format!("usr/sbin/{name}"), "xtables-nft-multi")
    });
    let folders = ["bin", "sbin", "usr/bin", "usr/sbin"];
    let missing = debian.applets.iter().filter(|applet| {
        let mut places = folders.iter().map(|folder| debian.root.join(folder));
        !places.any(|folder| folder.join(applet).symlink_metadata().is_ok())
    });
    Ok(missing.fold(tree, |tree, applet| {
        tree.add_symlink(&format!("bin/{applet}"), "busybox")
    }))
}

/// helm-controller, and what its jobs run: helm, started by a stand-in for klipper-helm's script.
fn chart_images(kit: &ContentKit, layers: &Layers) -> Result<Vec<Image>> {
    let name = "helm-controller";
    let tree =
        Tree::default().add_program("usr/bin/helm-controller", kit.program_path("helm", name)?);
    let stack = vec![layers.base.clone(), Rc::new(tree)];
    let tag = format!("v{}", kit.module_version("helm")?);
    let controller = new_image((DOCKER, "rancher/helm-controller"), tag, stack, &[]);
    let helm = Tree::default()
        .add_program("usr/bin/helm", kit.program_path("helm", "helm")?)
        .add_script("entry", KLIPPER_ENTRY)
        .add_folder("home/klipper-helm", 0o755);
    let stack = vec![layers.base.clone(), layers.busybox.clone(), Rc::new(helm)];
    let job = new_image(
        (DOCKER, "rancher/klipper-helm"),
        KLIPPER.to_owned(),
        stack,
        &["/entry"],
    );
    let job = Image {
        user: "1000:1000",
        ..job
    };
    Ok(vec![controller, job])
}

fn for_tests(kit: &ContentKit, layers: &Layers) -> Result<Vec<Image>> {
    let shell = vec![layers.base.clone(), layers.busybox.clone()];
    let busybox = new_image(
        (DOCKER, "library/busybox"),
        BUSYBOX.to_owned(),
        shell.clone(),
        &[],
    );
    let web = Tree::default().add_program("web", kit.program_path("small", "web")?);
    let mut stack = shell;
    stack.push(Rc::new(web));
    let web = new_image((GITHUB, "kctl/lab-test"), TEST.to_owned(), stack, &["/web"]);
    Ok(vec![busybox, web])
}

fn new_image(
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
        command: &[],
        user: "",
    }
}

/// Users, a place for temporary files, whom to trust.
fn base_layer(kit: &ContentKit) -> Tree {
    let tree = Tree::default()
        .add_text("etc/passwd", PASSWD)
        .add_text("etc/group", GROUP)
        .add_text("etc/nsswitch.conf", "hosts: files dns\n")
        .add_folder("root", 0o700)
        .add_folder("tmp", 0o1777)
        .add_folder("var/tmp", 0o1777);
    match &kit.roots {
        Some(roots) => tree.add_text("etc/ssl/certs/ca-certificates.crt", roots),
        None => tree,
    }
}

/// The one binary under all its names, and the runner that the static pods start it with.
fn kubernetes_layer(kubernetes: &BuiltModule) -> Tree {
    let mut tree = Tree::default().add_program("go-runner", kubernetes.program_path("go-runner"));
    let mut names = COMPONENTS
        .iter()
        .map(|name| format!("usr/local/bin/{name}"));
    let first = names.next().unwrap_or_default();
    tree = tree.add_program(&first, kubernetes.program_path("kubernetes"));
    names.fold(tree, |tree, name| tree.add_hard_link(&name, &first))
}

/// iptables and ext4's programs, in one layer: a node that has kube-proxy has it.
fn debian_layer(kit: &ContentKit) -> Result<Tree> {
    let wanted = |path: &str| {
        let others = ["usr/sbin/runc", "bin/busybox"];
        debian::is_served(path) && !others.contains(&path)
    };
    let tree = Tree::default().import_folder(&kit.debian.root, wanted)?;
    Ok(XTABLES.iter().fold(tree, |tree, name| {
        tree.add_symlink(&format!("usr/sbin/{name}"), "xtables-nft-multi")
    }))
}

fn busybox_layer(kit: &ContentKit) -> Tree {
    let tree = Tree::default().add_program("bin/busybox", kit.debian.root.join("bin/busybox"));
    kit.debian.applets.iter().fold(tree, |tree, applet| {
        tree.add_symlink(&format!("bin/{applet}"), "busybox")
    })
}
