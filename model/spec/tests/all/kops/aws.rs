//! AWS objects, policies among them.

use super::compare::{ComparedObject, Difference, Objects, compare_objects};
use super::terraform::{Attributes, from_cloud, from_fixture};
use full::FullSpec;
use full::objects::desired_objects;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The objects of a case, `text` being kOps', and the names that kOps has in a form that AWS refuses.
pub fn compare_aws(full: &FullSpec, text: &str) -> (Vec<ComparedObject>, Vec<Difference>) {
    let names = names_with_dashes(text);
    let single = names.iter().fold(text.to_owned(), |text, name| {
        text.replace(name, &name.replace("--", "-"))
    });
    let ours = from_cloud(&desired_objects(full, &BTreeMap::new(), Vec::new()));
    let compared = compare_objects(&by_place(ours), &by_place(from_fixture(&single)));
    let renamed = names.into_iter().map(|name| Difference {
        place: "name of a load balancer or target group".to_owned(),
        ours: Some(name.replace("--", "-").into()),
        theirs: Some(name.into()),
    });
    (compared, renamed.collect())
}

/// Names of load balancers and target groups with several dashes in a row.
fn names_with_dashes(text: &str) -> BTreeSet<String> {
    const KINDS: [&str; 5] = ["api-", "bastion-", "kops-controller-", "tcp-", "tls-"];
    let words = text.split(|one: char| !(one.is_ascii_alphanumeric() || one == '-'));
    let balanced =
        words.filter(|word| word.contains("--") && KINDS.iter().any(|kind| word.starts_with(kind)));
    balanced.map(str::to_owned).collect()
}

fn by_place(objects: BTreeMap<(String, String), Attributes>) -> Objects {
    let placed = objects.into_iter().map(|((kind, name), attributes)| {
        let place = (format!("{kind}/{name}"), String::new());
        (place, with_places(&kind, attributes))
    });
    placed.collect()
}

/// What is a list for AWS and a set by its meaning, by names: a group's tags, and what a role may do.
fn with_places(kind: &str, mut attributes: Attributes) -> Value {
    if let Some(Value::Array(tags)) = attributes.remove("tag") {
        let named = tags.into_iter().map(|tag| {
            let key = tag["key"].as_str().unwrap_or_default().to_owned();
            (key, tag)
        });
        attributes.insert("tag".into(), named.collect());
    }
    if kind == "iam_role_policy" {
        let policy = attributes.remove("policy").unwrap_or_default();
        let allowed = allowed_actions(&policy).into_iter();
        let named = allowed.map(|action| (action, Value::Bool(true)));
        attributes.insert("policy".into(), named.collect());
    }
    Value::Object(attributes)
}

/// What a policy allows, one action on one resource at a time, as text. kOps' stand-ins for a bucket are our one bucket.
fn allowed_actions(policy: &Value) -> BTreeSet<String> {
    let many = |value: &Value| match value {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let mut allowed = BTreeSet::new();
    for statement in many(&policy["json"]["Statement"]) {
        for action in many(&statement["Action"]) {
            for resource in many(&statement["Resource"]) {
                let mut single = statement.clone();
                single["Action"] = action.clone();
                single["Resource"] = resource;
                if take_owner(&mut single) {
                    // The rest of the statement is compared; that this is there differs once for each policy.
                    allowed.insert("aws:ResourceAccount".to_owned());
                }
                let text = single.to_string();
                let text = text.replace("placeholder-read-bucket", "state");
                allowed.insert(text.replace("placeholder-write-bucket", "state"));
            }
        }
    }
    allowed
}

/// Takes the condition on the owner of a bucket out of a statement. True if it was there.
fn take_owner(statement: &mut Value) -> bool {
    let conditions = statement
        .get_mut("Condition")
        .and_then(Value::as_object_mut);
    let Some(conditions) = conditions else {
        return false;
    };
    let equals = conditions
        .get_mut("StringEquals")
        .and_then(Value::as_object_mut);
    let Some(equals) = equals.filter(|equals| equals.contains_key("aws:ResourceAccount")) else {
        return false;
    };
    equals.remove("aws:ResourceAccount");
    if equals.is_empty() {
        conditions.remove("StringEquals");
    }
    if conditions.is_empty()
        && let Some(statement) = statement.as_object_mut()
    {
        statement.remove("Condition");
    }
    true
}

/// Of each kind and case, how many of kOps' objects kctl's equal in everything, and how many there are.
#[derive(Default)]
pub struct Table(BTreeMap<String, BTreeMap<String, (usize, usize)>>);

impl Table {
    pub fn add(&mut self, case: &str, compared: &[ComparedObject]) {
        for one in compared.iter().filter(|one| one.is_theirs) {
            let (kind, _) = one.place.split_once('/').expect("a kind and a name");
            let row = self.0.entry(kind.to_owned()).or_default();
            let (equal, all) = row.entry(case.to_owned()).or_default();
            *equal += usize::from(one.differences.is_empty());
            *all += 1;
        }
    }

    /// Of all.
    pub fn sum(&self) -> (usize, usize) {
        let cells = self.0.values().flat_map(BTreeMap::values);
        cells.fold((0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1))
    }

    /// Kinds down, cases across.
    pub fn as_text(&self) -> String {
        let cases: BTreeSet<&String> = self.0.values().flat_map(BTreeMap::keys).collect();
        let numbered = (1..).zip(&cases);
        let mut lines: Vec<String> = numbered
            .map(|(number, case)| format!("{number:>3} {case}"))
            .collect();
        let header = (1..=cases.len()).map(|number| format!("{number:>7}"));
        lines.push(format!(
            "{:34}{}",
            "equal / all",
            header.collect::<String>()
        ));
        for (kind, row) in &self.0 {
            let cells = cases.iter().map(|case| match row.get(*case) {
                Some((equal, all)) => format!("{:>7}", format!("{equal}/{all}")),
                None => format!("{:>7}", "-"),
            });
            lines.push(format!("{kind:34}{}", cells.collect::<String>()));
        }
        lines.join("\n")
    }
}
