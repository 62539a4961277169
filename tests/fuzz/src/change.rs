//! Bytes as changes of a valid spec: which field of which object gets which value. libFuzzer comes much further with them
//! than with text, most of whose changes are typos.

use super::problems::fit_to_be_shown;
use super::same::same;
use super::samples::SPECS;
use spec::api::cluster::ClusterSpec;
use spec::api::instance_group::InstanceGroupSpec;
use spec::api::set::{set_field, unset_field};
use spec::api::{Cluster, InstanceGroup, Object};
use spec::read::{ReadOptions, read_documents_with, render_problems};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use test_support::trace::{Leaf, type_leaves};

/// Values that mean something somewhere, and some that mean nothing anywhere.
const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "10",
    "20",
    "100",
    "255",
    "2147483647",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "99999999999999999999",
    "0.5",
    "1e400",
    "true",
    "false",
    "null",
    "[]",
    "{}",
    "[{}]",
    "[[]]",
    "{a: b}",
    "{a: {b: [c]}}",
    "\"",
    "'",
    "a",
    "A",
    "a,b",
    "a,a",
    "a=b",
    "a=b:NoSchedule",
    "a=:NoExecute",
    "=",
    "*",
    "/",
    "10.0.0.0/8",
    "10.0.0.0/16",
    "10.1.2.3/32",
    "10.255.0.0/28",
    "100.64.0.0/10",
    "172.20.0.0/16",
    "192.168.0.0/30",
    "0.0.0.0/0",
    "::/0",
    "fd00::/8",
    "10.0.0.1",
    "300.1.1.1/8",
    "10.0.0.0/33",
    "eu-west-1a",
    "eu-west-1b",
    "eu-west-1",
    "utility-eu-west-1a",
    "us-east-1a",
    "zone",
    "Public",
    "Private",
    "Utility",
    "Internal",
    "Network",
    "Classic",
    "None",
    "Master",
    "ControlPlane",
    "Node",
    "Bastion",
    "nodes",
    "control-plane-eu-west-1a",
    "bastions",
    "main",
    "events",
    "demo.example.com",
    "x.k8s.local",
    "a-name-of-64-characters-which-is-one-more-than-dns-takes-of-one-a",
    ".",
    "-",
    "a.",
    "s3://bucket",
    "s3://bucket/path",
    "s3://",
    "file:///x",
    "https://example.com/a",
    "ftp://example.com",
    "arn:aws:iam::1:role/x",
    "arn:aws:iam::123456789012:instance-profile/some",
    "ami-0123456789abcdef0",
    "099720109477/ubuntu/image",
    "ssm:/a/b",
    "vpc-12345678",
    "subnet-1",
    "eipalloc-1",
    "i-1",
    "vol-1",
    "tgw-1",
    "nat-1",
    "External",
    "t3.medium",
    "m6g.large",
    "x",
    "m5.large,m5a.large",
    "gp2",
    "gp3",
    "io1",
    "io2",
    "st1",
    "/dev/sda1",
    "/dev/xvda",
    "0444",
    "999",
    "1.36.0",
    "v1.35.1",
    "1.31.0",
    "1.99.0",
    "3.5.9",
    "latest",
    "10m",
    "1h30m",
    "-5s",
    "1d",
    "70%",
    "101%",
    "100m",
    "77Mi",
    "1Ei",
    "1.5Gi",
    "/etc/x",
    "../x",
    "SGVsbG8=",
    "{{",
    "{{x}}",
    "<late>",
    "${x}",
    "$(x)",
    "`x`",
    "\n",
    "a\nb",
    "\u{1b}[2J",
    "\u{0}",
    "\u{2028}",
    "ü",
    "\u{1f600}",
    "{\"Statement\": []}",
    "[{\"Effect\": \"Allow\", \"Action\": [\"s3:*\"], \"Resource\": [\"*\"]}]",
    "net.ipv4.ip_forward=1",
    "kops.k8s.io/cluster",
    "kubernetes.io/role=x",
    "30000-32767",
    "5-1",
    "80,443",
    "Spot",
    "lowest-price",
];

/// Keys for entries of maps.
const KEYS: [&str; 8] = [
    "node",
    "master",
    "bastion",
    "a",
    "kops.k8s.io/x",
    "a.b",
    "",
    "kubernetes.io/role",
];

/// A spec's objects.
#[derive(Clone)]
pub struct Spec {
    pub cluster: Cluster,
    pub groups: Vec<InstanceGroup>,
}

impl Spec {
    /// Of a file; `None` if it is refused or is no cluster.
    pub fn read(text: &str) -> Option<Self> {
        let options = ReadOptions {
            allow_unsupported: true,
        };
        let documents = match read_documents_with("spec.yaml", text, options) {
            Ok(documents) => documents,
            Err(problems) => {
                fit_to_be_shown(&problems);
                return None;
            }
        };
        let (mut clusters, mut groups) = (Vec::new(), Vec::new());
        for document in documents {
            match document.object {
                Object::Cluster(cluster) => clusters.push(cluster),
                Object::InstanceGroup(group) => groups.push(group),
                Object::SSHCredential(_) | Object::Keyset(_) => {}
            }
        }
        let [cluster] = clusters.as_slice() else {
            return None;
        };
        Some(Self {
            cluster: cluster.clone(),
            groups,
        })
    }
}

fn samples() -> &'static [Spec] {
    static READ: OnceLock<Vec<Spec>> = OnceLock::new();
    READ.get_or_init(|| {
        let read = |text: &&str| Spec::read(text).expect("a sample");
        SPECS.iter().map(read).collect()
    })
}

/// Every field of clusters, and every field of groups.
fn fields() -> &'static [Vec<Leaf>; 2] {
    static FIELDS: OnceLock<[Vec<Leaf>; 2]> = OnceLock::new();
    FIELDS.get_or_init(|| {
        [
            type_leaves::<ClusterSpec>("spec"),
            type_leaves::<InstanceGroupSpec>("spec"),
        ]
    })
}

/// The spec that bytes mean: the first one picks the sample, then each change takes five, and what its value takes.
pub fn changed(data: &[u8]) -> Spec {
    let mut bytes = data.iter().copied();
    let first = usize::from(bytes.next().unwrap_or(0));
    let mut spec = samples()[first % samples().len()].clone();
    while change(&mut spec, &mut bytes).is_some() {}
    spec
}

fn change(spec: &mut Spec, bytes: &mut impl Iterator<Item = u8>) -> Option<()> {
    let (object, high, low, how, kind) = (
        bytes.next()?,
        bytes.next()?,
        bytes.next()?,
        bytes.next()?,
        bytes.next()?,
    );
    let field = usize::from(u16::from_be_bytes([high, low]));
    let value = match usize::from(kind) {
        kind if kind < VALUES.len() => VALUES[kind].to_owned(),
        // Text of the input's own, the longer the later its kind.
        kind => {
            let own: Vec<u8> = bytes.take(1 + (kind - VALUES.len()) % 48).collect();
            String::from_utf8_lossy(&own).into_owned()
        }
    };
    let index = usize::from(object) % (1 + spec.groups.len());
    let leaves = &fields()[usize::from(index > 0)];
    let path = path(&leaves[field % leaves.len()].path, how);
    let remove = how >= 0xf0;
    let result = match index.checked_sub(1).and_then(|at| spec.groups.get_mut(at)) {
        Some(group) if remove => unset_field(group, &path),
        Some(group) => set_field(group, &path, &value),
        None if remove => unset_field(&mut spec.cluster, &path),
        None => set_field(&mut spec.cluster, &path, &value),
    };
    if let Err(problems) = result {
        fit_to_be_shown(&problems);
    }
    Some(())
}

/// A field's path with an element for each `[]` and a key for each `.*`.
fn path(leaf: &str, how: u8) -> String {
    let element = match how & 0x07 {
        0..=2 => "[0]",
        3..=4 => "[1]",
        5 => "[2]",
        6 => "[*]",
        _ => "[9]",
    };
    let key = KEYS[usize::from(how >> 3) % KEYS.len()];
    leaf.replace("[]", element)
        .replace(".*", &format!("[\"{key}\"]"))
}

/// Where there are so many fields: for seeds that reach each of them.
pub fn field_counts() -> [usize; 2] {
    fields().each_ref().map(Vec::len)
}

/// Every word in their paths.
pub fn field_names() -> BTreeSet<String> {
    let leaves = fields().iter().flatten();
    let words = leaves.flat_map(|leaf| leaf.path.split('.'));
    let words = words.map(|word| word.trim_end_matches("[]").to_owned());
    words.filter(|word| word != "*").collect()
}

/// How many values there are to choose from.
pub const fn value_count() -> usize {
    VALUES.len()
}

/// As kOps writes it.
pub fn written(spec: &Spec) -> String {
    let mut objects = vec![Object::Cluster(spec.cluster.clone())];
    objects.extend(spec.groups.iter().cloned().map(Object::InstanceGroup));
    node::yaml::to_yaml_documents(&objects).expect("a spec has a YAML form")
}

/// What is written is read back as it was.
pub fn comes_back(spec: &Spec) {
    let text = written(spec);
    let options = ReadOptions {
        allow_unsupported: true,
    };
    let again = read_documents_with("written.yaml", &text, options)
        .unwrap_or_else(|problems| panic!("{}\n{text}", render_problems(&problems)));
    let mut objects = vec![Object::Cluster(spec.cluster.clone())];
    objects.extend(spec.groups.iter().cloned().map(Object::InstanceGroup));
    let again: Vec<Object> = again.into_iter().map(|document| document.object).collect();
    same(&again, &objects, "a spec read back");
}
