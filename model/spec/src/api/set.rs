//! `--set PATH=VALUE` and `--unset PATH`: one field of an object, addressed by its path in YAML.
//!
//! The changed object goes through the reader, so a wrong name or value is refused as in a file.

use crate::read::path::{self, PathSegment};
use crate::read::{
    Content, Entry, Node, Problem, Scalar, parse_yaml, quote_text, read_node, refusal_problem,
    split_list, unknown_problem,
};
use node::yaml::MAX_DEPTH;

use super::object::{Resource, Spec};
use super::{set_names, unsupported};

/// Sets a field: `spec.nodePortAccess` to `1.2.3.4/32,10.0.0.0/8`, `cluster.spec.addons[0].manifest`
/// to a URL, `spec.cloudLabels.Owner` to a name.
///
/// As in kOps, elements for a list are parted by commas and added to what is there (each once), and no text at
/// all makes an empty section. A list or mapping in YAML's brackets (`[]`, `{}`) replaces what is
/// there. A list element that does not exist is made if it is the next one; `[*]` means every
/// element. Names that hold dots are escaped (`\.`) or put in `["..."]`; kOps' newer names of fields
/// are understood.
///
/// On failure the object is unchanged.
pub fn set_field<S: Spec + Default>(
    object: &mut Resource<S>,
    path: &str,
    text: &str,
) -> Result<(), Vec<Problem>> {
    place_text(object, path, text).map_err(|problems| {
        below_spec(path, problems, |meant| {
            place_text(&mut Resource::<S>::default(), meant, text).is_ok()
        })
    })
}

/// Names the field of the spec that was meant, if only `spec.` is missing.
fn below_spec(path: &str, problems: Vec<Problem>, is_field: impl Fn(&str) -> bool) -> Vec<Problem> {
    let meant = format!("spec.{path}");
    if path.starts_with("spec.") || !is_field(&meant) {
        return problems;
    }
    let message = format!("there is no field {path}");
    vec![Problem::error(path, message).hint(format!("did you mean {meant}?"))]
}

fn place_text<S: Spec + Default>(
    object: &mut Resource<S>,
    path: &str,
    text: &str,
) -> Result<(), Vec<Problem>> {
    let steps = parse_steps(S::KIND, path)?;
    let assigned = Node::from_scalar(Scalar::Assigned(text.to_owned()));
    let placed =
        |value: &Node| change_object(object, path, |root| place_value(root, &steps, value));
    *object = if text.starts_with(['{', '['])
        && let Ok(nodes) = parse_yaml(text)
        && let [structured] = nodes.as_slice()
    {
        // Text fields take brackets as they are.
        placed(structured).or_else(|problems| placed(&assigned).or(Err(problems)))?
    } else {
        placed(&assigned)?
    };
    Ok(())
}

/// Removes a field, a map's entry or a list's element; what is not set stays so.
pub fn unset_field<S: Spec + Default>(
    object: &mut Resource<S>,
    path: &str,
) -> Result<(), Vec<Problem>> {
    let steps = parse_steps(S::KIND, path)?;
    // A null in its place shows the reader whether there is such a name. It cannot stay there: in a map it is an entry.
    let name = |step: &PathSegment| matches!(step, PathSegment::Field(_));
    let names = steps.iter().rposition(name).map_or(0, |last| last + 1);
    let (names, _) = steps.split_at(names);
    let null = Node::from_scalar(Scalar::Null);
    change_object(object, path, |root| place_value(root, names, &null))?;
    *object = change_object(object, path, |root| remove_value(root, &steps))?;
    Ok(())
}

/// The steps of a path, without the name of the object that kOps allows in front.
fn parse_steps(kind: &str, path: &str) -> Result<Vec<PathSegment>, Vec<Problem>> {
    let mut steps = path::parse(path).map_err(|error| {
        let hint = "a path looks like spec.subnets[0].cidr";
        let message = format!("{} is not a field path: {error}", quote_text(path));
        vec![Problem::error("", message).hint(hint)]
    })?;
    if steps.len() > MAX_DEPTH {
        let message = format!("the path has {} steps, no field is so deep", steps.len());
        let hint = "a path looks like spec.subnets[0].cidr; put a name with dots in [\"...\"]";
        return Err(vec![Problem::error("", message).hint(hint)]);
    }
    if let (Some(PathSegment::Field(first)), true) = (steps.first(), steps.len() > 1)
        && first.eq_ignore_ascii_case(kind)
    {
        steps.remove(0);
    }
    Ok(set_names::in_v1alpha2(steps))
}

/// The object with that change of its written form, as the reader reads it.
fn change_object<S: Spec + Default>(
    object: &Resource<S>,
    path: &str,
    change: impl FnOnce(&mut Node) -> Result<(), String>,
) -> Result<Resource<S>, Vec<Problem>> {
    let unwritable = |error: serde_json::Error| {
        let hint = "report this: it is a defect of kctl";
        vec![Problem::error(path, error.to_string()).hint(hint)]
    };
    let before = Node::from(&serde_json::to_value(object).map_err(unwritable)?);
    let mut root = before.clone();
    change(&mut root).map_err(|message| {
        let hint = "look at the object with `kctl get -o yaml`, and name a field or the next element of a list";
        vec![Problem::error(path, message).hint(hint)]
    })?;
    let used_before = unsupported::find_unsupported(S::KIND, &before);
    let reading = read_node::<Resource<S>>(&root);
    let mut problems: Vec<Problem> = reading
        .unknown
        .iter()
        .filter_map(|unknown| unknown_problem(S::KIND, unknown))
        .collect();
    problems.extend(reading.refusals.into_iter().map(refusal_problem));
    for found in unsupported::find_unsupported(S::KIND, &root) {
        if !used_before.iter().any(|before| before.path == found.path) {
            problems.push(Problem::error(found.path, found.entry.message()).hint("leave it out"));
        }
    }
    match reading.value {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(problems),
    }
}

/// Puts a value at the end of the steps, making what is missing on the way.
fn place_value(node: &mut Node, steps: &[PathSegment], value: &Node) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        assign_value(node, value);
        return Ok(());
    };
    match step {
        PathSegment::Field(name) => place_value(field_entry(node, name)?, rest, value),
        PathSegment::Element(index) => {
            let elements = list_elements(node)?;
            let length = elements.len();
            if *index == length {
                elements.push(Node::from_scalar(Scalar::Null));
            }
            let element = elements.get_mut(*index);
            place_value(
                element.ok_or_else(|| no_element(*index, length))?,
                rest,
                value,
            )
        }
        PathSegment::Each => list_elements(node)?
            .iter_mut()
            .try_for_each(|element| place_value(element, rest, value)),
    }
}

fn assign_value(node: &mut Node, value: &Node) {
    match (&mut node.content, &value.content) {
        (Content::List(elements), Content::Scalar(Scalar::Assigned(text))) => {
            for part in split_list(text) {
                let there = |element: &Node| matches!(&element.content, Content::Scalar(scalar) if scalar.text() == part);
                if !elements.iter().any(there) {
                    elements.push(Node::from_scalar(Scalar::Assigned(part.to_owned())));
                }
            }
        }
        (Content::Map(_), Content::Scalar(Scalar::Assigned(text))) if text.is_empty() => {}
        _ => *node = value.clone(),
    }
}

/// Removes what stands at the end of the steps, if it is there.
fn remove_value(node: &mut Node, steps: &[PathSegment]) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        return Ok(());
    };
    match step {
        PathSegment::Field(_) if node.is_null() => remove_value(node, rest),
        PathSegment::Field(name) => {
            let entries = map_entries(node, name)?;
            if rest.is_empty() {
                entries.retain(|entry| entry.key != *name);
                return Ok(());
            }
            let mut entries = entries.iter_mut();
            match entries.find(|entry| entry.key == *name) {
                Some(entry) => remove_value(&mut entry.value, rest),
                None => remove_value(&mut Node::from_scalar(Scalar::Null), rest),
            }
        }
        PathSegment::Element(index) => {
            let elements = list_elements(node)?;
            let length = elements.len();
            let element = elements.get_mut(*index);
            let element = element.ok_or_else(|| no_element(*index, length))?;
            if rest.is_empty() {
                elements.remove(*index);
                return Ok(());
            }
            remove_value(element, rest)
        }
        PathSegment::Each if rest.is_empty() => {
            list_elements(node)?.clear();
            Ok(())
        }
        PathSegment::Each => list_elements(node)?
            .iter_mut()
            .try_for_each(|element| remove_value(element, rest)),
    }
}

fn no_element(index: usize, length: usize) -> String {
    format!("the list has {length} elements, there is no [{index}]")
}

fn field_entry<'a>(node: &'a mut Node, name: &str) -> Result<&'a mut Node, String> {
    if node.is_null() {
        node.content = Content::Map(Vec::new());
    }
    let entries = map_entries(node, name)?;
    let index = entries
        .iter()
        .position(|entry| entry.key == name)
        .unwrap_or(entries.len());
    if index == entries.len() {
        let value = Node::from_scalar(Scalar::Null);
        entries.push(Entry {
            key: name.to_owned(),
            key_span: crate::read::Span::default(),
            value,
        });
    }
    entries
        .get_mut(index)
        .map(|entry| &mut entry.value)
        .ok_or_else(|| format!("no field \"{name}\""))
}

/// The entries of a map, of which one is called so.
fn map_entries<'a>(node: &'a mut Node, name: &str) -> Result<&'a mut Vec<Entry>, String> {
    let what = node.kind_text();
    match &mut node.content {
        Content::Map(entries) => Ok(entries),
        _ => Err(format!("{what} has no field \"{name}\"")),
    }
}

fn list_elements(node: &mut Node) -> Result<&mut Vec<Node>, String> {
    if node.is_null() {
        node.content = Content::List(Vec::new());
    }
    let what = node.kind_text();
    match &mut node.content {
        Content::List(elements) => Ok(elements),
        _ => Err(format!("{what} is not a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::{set_field, unset_field};
    use crate::api::{Cluster, InstanceGroup};
    use node::yaml::to_yaml;

    fn spec_after(assignments: &[(&str, &str)]) -> String {
        let mut cluster = Cluster::default();
        for (path, text) in assignments {
            set_field(&mut cluster, path, text).unwrap();
        }
        to_yaml(&cluster.spec).unwrap()
    }

    fn error(path: &str, text: &str) -> String {
        let problems = set_field(&mut Cluster::default(), path, text).unwrap_err();
        crate::read::render_problems(&problems)
    }

    #[test]
    fn the_field_decides_what_text_means() {
        let yaml = spec_after(&[
            ("cluster.spec.nodePortAccess", "1.2.3.4/32,10.20.30.0/24"),
            ("spec.kubernetesVersion", "1.30"),
            ("spec.kubelet.maxPods", "30"),
            ("spec.kubelet.anonymousAuth", "false"),
            ("spec.kubelet.featureGates.Foo", "true"),
            ("spec.rollingUpdate.maxSurge", "25%"),
            ("spec.rollingUpdate.maxUnavailable", "2"),
            ("spec.cloudLabels.Owner", "a, b"),
            (r"spec.cloudLabels.a\.b", "c"),
            ("spec.networking.cni", "{}"),
            ("spec.api.dns", ""),
            ("spec.subnets[0].name", "a"),
            ("spec.subnets[1].name", "b"),
            ("spec.subnets[*].type", "private"),
        ]);
        assert_eq!(
            yaml,
            "api:\n  dns: {}\ncloudLabels:\n  Owner: a, b\n  a.b: c\nkubelet:\n  anonymousAuth: false\n  featureGates:\n    Foo: \"true\"\n  \
             maxPods: 30\nkubernetesVersion: \"1.30\"\nnetworking:\n  cni: {}\nnodePortAccess:\n- 1.2.3.4/32\n\
             - 10.20.30.0/24\nrollingUpdate:\n  maxSurge: 25%\n  maxUnavailable: 2\nsubnets:\n- name: a\n  type: Private\n\
             - name: b\n  type: Private\n"
        );
    }

    #[test]
    fn elements_are_added_to_a_list_and_brackets_replace_it() {
        let added = spec_after(&[
            ("spec.sshAccess", "10.0.0.0/8"),
            ("spec.sshAccess", "192.0.2.0/24, pl-1"),
            ("spec.sshAccess", "pl-1,10.0.0.0/8"),
        ]);
        assert_eq!(added, "sshAccess:\n- 10.0.0.0/8\n- 192.0.2.0/24\n- pl-1\n");
        let text = spec_after(&[("spec.additionalPolicies.node", "[{}]")]);
        assert_eq!(text, "additionalPolicies:\n  node: '[{}]'\n");
        let replaced = spec_after(&[
            ("spec.sshAccess", "10.0.0.0/8"),
            ("spec.sshAccess", "[192.0.2.0/24]"),
        ]);
        assert_eq!(replaced, "sshAccess:\n- 192.0.2.0/24\n");
    }

    #[test]
    fn names_of_the_newer_version_are_understood() {
        let newer = spec_after(&[
            ("spec.api.publicName", "api.example.com"),
            ("spec.networking.subnets[0].name", "a"),
            ("spec.etcdClusters[0].members[0].name", "a"),
            ("spec.controlPlaneKubelet.maxPods", "9"),
        ]);
        let older = spec_after(&[
            ("spec.masterPublicName", "api.example.com"),
            ("spec.subnets[0].name", "a"),
            ("spec.etcdClusters[0].etcdMembers[0].name", "a"),
            ("spec.masterKubelet.maxPods", "9"),
        ]);
        assert_eq!(newer, older);
        let mut group = InstanceGroup::default();
        set_field(&mut group, "spec.rootVolume.size", "30").unwrap();
        assert_eq!(group.spec.root_volume_size, Some(30));
    }

    #[test]
    fn wrong_names_and_values_are_refused_as_in_a_file() {
        assert!(error("spec.networkCidr", "10.0.0.0/8").contains("did you mean \"networkCIDR\"?"));
        assert!(error("spec.kubelet.maxPods", "many").contains("many is not a whole number"));
        assert!(error("spec.subnets[3].name", "a").contains("the list has 0 elements"));
        assert!(error("kubelet.maxPods", "3").contains("did you mean spec.kubelet.maxPods?"));
        assert!(error("spec..x", "a").contains("is not a field path"));
        assert!(error("spec.karpenter.enabled", "true").contains("Karpenter"));
    }

    #[test]
    fn unset_takes_a_value_back_and_knows_names() {
        let mut group = InstanceGroup::default();
        let empty = group.clone();
        set_field(&mut group, "spec.kubelet.maxPods", "30").unwrap();
        set_field(&mut group, "spec.taints", "a=b:NoSchedule").unwrap();
        unset_field(&mut group, "spec.kubelet").unwrap();
        unset_field(&mut group, "spec.taints[0]").unwrap();
        unset_field(&mut group, "spec.maxSize").unwrap();
        assert_eq!(group, empty);
        for nothing in [
            "spec.kubelet.maxPods",
            "spec.nodeLabels.team",
            "spec.rollingUpdate",
        ] {
            unset_field(&mut group, nothing).unwrap();
            assert_eq!(group, empty, "{nothing} was not set");
        }
        for wrong in ["spec.maxsize", "spec.kubelt.maxPods", "spec.taints[0]"] {
            assert!(unset_field(&mut group, wrong).is_err(), "{wrong}");
            assert_eq!(group, empty, "{wrong}");
        }
    }

    #[test]
    fn unset_takes_an_entry_out_of_a_map() {
        let mut cluster = Cluster::default();
        for path in [
            "spec.cloudLabels.Team",
            "spec.cloudLabels.Owner",
            "spec.kubelet.featureGates.Foo",
        ] {
            set_field(&mut cluster, path, "true").unwrap();
        }
        unset_field(&mut cluster, "spec.cloudLabels.Team").unwrap();
        unset_field(&mut cluster, "spec.kubelet.featureGates.Foo").unwrap();
        let left = to_yaml(&cluster.spec).unwrap();
        assert!(left.contains("cloudLabels:\n  Owner: \"true\"\n"), "{left}");
        assert!(!left.contains("Team") && !left.contains("Foo"), "{left}");
    }
}
