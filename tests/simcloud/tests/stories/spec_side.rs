//! From the text of a spec to the AWS objects that it wants: read, validated, expanded, built. Objects of the state store are left
//! out: their names are hashes of their content, and would change with every release.

use cloud::facts::{Facts, FactsWanted, Image, InstanceType};
use cloud::{Cloud, ownership};
use full::FullSpec;
use full::nodes::{UserData, node_config, user_data};
use node::config::{Arch, to_stored};
use node::yaml::to_yaml_documents;
use spec::api::{Cluster, InstanceGroup, Object};
use spec::catalog::Catalog;
use spec::expand::{expand, wanted_facts};
use spec::read::{Problem, read_documents, render_problems};
use spec::validate::{ClusterInput, validate};
use std::sync::LazyLock;
use test_support::made_up_agents;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::embedded().unwrap());

/// A cluster and its groups, as the user wrote them.
pub struct StorySpec {
    pub cluster: Cluster,
    /// Sorted by name.
    pub groups: Vec<InstanceGroup>,
}

/// Facts of an account that has every image and instance type that is asked for.
pub fn made_up_facts(wanted: &FactsWanted) -> Facts {
    let image = |name: &String| {
        let arm = name.contains("arm64");
        let image = Image {
            id: "ami-1".to_owned(),
            root_device: "/dev/xvda".to_owned(),
            arch: if arm { Arch::Arm64 } else { Arch::Amd64 },
            unfit: None,
            system: None,
        };
        (name.clone(), image)
    };
    let machine_type = |name: &String| {
        let machine_type = InstanceType {
            arch: Arch::Amd64,
            instance_store_disks: 0,
            gpu: false,
            nvidia_gpu: false,
            xen: false,
            max_interfaces: None,
            addresses_per_interface: None,
            zones: Vec::new(),
        };
        (name.clone(), machine_type)
    };
    Facts {
        account: "123456789012".to_owned(),
        partition: "aws".to_owned(),
        images: wanted.images.iter().map(image).collect(),
        instance_types: wanted.machine_types.iter().map(machine_type).collect(),
        ..Facts::default()
    }
}

impl StorySpec {
    /// The spec as a file.
    fn to_yaml(&self) -> String {
        let cluster = serde_json::to_value(&self.cluster);
        let groups = self.groups.iter().map(serde_json::to_value);
        let objects: Vec<_> = std::iter::once(cluster)
            .chain(groups)
            .map(Result::unwrap)
            .collect();
        to_yaml_documents(&objects).unwrap()
    }

    /// The full spec and the AWS objects that it wants, or what `kctl update` would say is wrong.
    pub fn desired_objects(&self) -> Result<(FullSpec, Vec<Cloud>), String> {
        let told = |problems: Vec<Problem>| render_problems(&problems);
        let (mut clusters, mut groups) = (Vec::new(), Vec::new());
        for document in read_documents("spec.yaml", &self.to_yaml()).map_err(told)? {
            match document.object {
                Object::Cluster(cluster) => clusters.push(cluster),
                Object::InstanceGroup(group) => groups.push(group),
                other => panic!("a story has no {}", other.kind()),
            }
        }
        let cluster = clusters.pop().unwrap();
        let mut problems = validate(&ClusterInput {
            cluster: &cluster,
            instance_groups: &groups,
            ssh_keys: &[],
        });
        problems.retain(Problem::is_error);
        if !problems.is_empty() {
            return Err(told(problems));
        }
        let facts = made_up_facts(&wanted_facts(&cluster, &groups));
        let full = expand(&cluster, &groups, &[], &facts, &CATALOG)
            .map_err(told)?
            .full;
        let desired = build_objects(&full);
        Ok((full, desired))
    }
}

fn build_objects(full: &FullSpec) -> Vec<Cloud> {
    let agents = made_up_agents();
    let user_data = full.groups.iter().filter_map(|group| {
        let config = node_config(full, &group.name, "", &agents).unwrap();
        let config = config.map(|config| to_stored(&config).unwrap());
        let text = user_data(&UserData {
            full,
            group: &group.name,
            node_config: config.as_ref().map_or("", |config| config.sha256.as_str()),
            trust_bundle: "",
            agents: &agents,
        });
        Some((group.name.clone(), text.unwrap()?))
    });
    let mut desired = full::objects::desired_objects(full, &user_data.collect(), Vec::new());
    ownership::set_ownership_tags(&mut desired, &full.state.config_base, "1");
    desired
}
