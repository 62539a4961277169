//! Types of a policy document. Lists are sorted and without duplicates; a single entry is a string where kOps writes one.

use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the policy language.
pub const VERSION: &str = "2012-10-17";

/// Condition operators, with keys and values.
pub(crate) type Condition = BTreeMap<&'static str, BTreeMap<String, Value>>;

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Policy {
    statement: Vec<Statement>,
    version: &'static str,
}

/// A statement that allows actions. kctl writes no denying statements.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Statement {
    action: OneOrMany,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    condition: Condition,
    effect: &'static str,
    resource: OneOrMany,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(BTreeSet<String>),
}

impl Policy {
    /// The policy with these statements. Those that differ in their actions alone become one: IAM limits the size of a policy.
    pub(crate) fn new(statements: Vec<Statement>) -> Self {
        let mut all: Vec<Statement> = Vec::new();
        for one in statements {
            let same = |other: &&mut Statement| {
                (&other.condition, &other.resource) == (&one.condition, &one.resource)
            };
            match (
                all.iter_mut().find(same).map(|other| &mut other.action),
                &one.action,
            ) {
                (Some(OneOrMany::Many(actions)), OneOrMany::Many(more)) => {
                    actions.extend(more.iter().cloned());
                }
                _ => all.push(one),
            }
        }
        Self {
            statement: all,
            version: VERSION,
        }
    }

    /// The document as JSON. Strings and lists of strings can always be serialized.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Statement {
    /// Allows these actions; the caller adds the resources.
    pub(crate) fn allow<T: ToString>(actions: impl IntoIterator<Item = T>) -> Self {
        Self {
            action: OneOrMany::Many(string_set(actions)),
            condition: Condition::new(),
            effect: "Allow",
            resource: OneOrMany::Many(BTreeSet::new()),
        }
    }

    /// Allows one action, written as a string.
    pub(crate) fn allow_one(action: &str) -> Self {
        Self {
            action: OneOrMany::One(action.to_owned()),
            ..Self::allow::<&str>([])
        }
    }

    /// On one resource, written as a string.
    pub(crate) fn on_one(self, resource: impl Into<String>) -> Self {
        Self {
            resource: OneOrMany::One(resource.into()),
            ..self
        }
    }

    pub(crate) fn on_all(self) -> Self {
        self.on_one("*")
    }

    /// On these resources, written as a list.
    pub(crate) fn on_each<T: ToString>(self, resources: impl IntoIterator<Item = T>) -> Self {
        Self {
            resource: OneOrMany::Many(string_set(resources)),
            ..self
        }
    }

    pub(crate) fn when(
        mut self,
        operator: &'static str,
        key: &str,
        value: impl Into<Value>,
    ) -> Self {
        self.condition
            .entry(operator)
            .or_default()
            .insert(key.to_owned(), value.into());
        self
    }
}

fn string_set<T: ToString>(items: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}
