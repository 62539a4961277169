//! Checks that every path in a template exists in its context and that every field of a context is used. Strict mode of
//! handlebars does neither completely.

use crate::addons::{NodeRegistration, samples};
use crate::boot::UserData;
use crate::units::{
    ApiProxyService, CertificatesService, CertificatesTimer, ContainerdService, Environment,
    HookService, ImagePulls, KubeletService, Logrotate, MasqueradeService, MountUnit,
    NodeupService, ProtokubeService, Variable, VpcInterfacesService,
};
use crate::{Template, render};
use handlebars::template::{HelperTemplate, Parameter, Template as Parsed, TemplateElement};
use handlebars::{Path, PathSeg};
use serde_json::Value;
use std::collections::BTreeSet;

/// State of a walk through a template along a sample of its context.
struct Walk {
    template: &'static str,
    used: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Walk {
    /// Follows `path` from the scope; `None`, and an entry in `wrong`, if it leads nowhere.
    fn follow_path(&mut self, scope: &[(String, Value)], path: &Path) -> Option<(String, Value)> {
        let Path::Relative((segments, raw)) = path else {
            return None;
        };
        let mut depth = scope.len() - 1;
        let mut rest = raw.as_str();
        while let Some(up) = rest.strip_prefix("../") {
            (depth, rest) = (depth - 1, up);
        }
        let (mut place, mut value) = scope[depth].clone();
        for segment in segments {
            let PathSeg::Named(name) = segment else {
                continue;
            };
            let Some(next) = value.get(name) else {
                self.wrong
                    .push(format!("{}: no {name} in {raw}", self.template));
                return None;
            };
            (place, value) = (format!("{place}/{name}"), next.clone());
        }
        self.used.insert(place.clone());
        Some((place, value))
    }

    fn follow_parameter(
        &mut self,
        scope: &[(String, Value)],
        parameter: &Parameter,
    ) -> Option<(String, Value)> {
        match parameter {
            Parameter::Path(path) => self.follow_path(scope, path),
            Parameter::Name(name) => self.follow_path(scope, &Path::parse(name).unwrap()),
            Parameter::Subexpression(inner) => {
                inner
                    .params()?
                    .iter()
                    .for_each(|parameter| drop(self.follow_parameter(scope, parameter)));
                None
            }
            _ => None,
        }
    }

    fn walk_elements(&mut self, scope: &[(String, Value)], parsed: Option<&Parsed>) {
        for element in parsed.map_or(&[][..], |parsed| &parsed.elements) {
            match element {
                TemplateElement::Expression(helper) | TemplateElement::HtmlExpression(helper) => {
                    if helper.params.is_empty() {
                        self.follow_parameter(scope, &helper.name);
                    }
                    let whole = helper.name.as_name() == Some("yaml");
                    for parameter in &helper.params {
                        if let Some((place, value)) = self.follow_parameter(scope, parameter)
                            && whole
                        {
                            collect_leaves(&place, &value, &mut self.used);
                        }
                    }
                }
                TemplateElement::HelperBlock(helper) => self.walk_block(scope, helper),
                TemplateElement::RawString(_) | TemplateElement::Comment(_) => {}
                other => self
                    .wrong
                    .push(format!("{}: {other:?} is not used here", self.template)),
            }
        }
    }

    fn walk_block(&mut self, scope: &[(String, Value)], helper: &HelperTemplate) {
        let name = helper.name.as_name().unwrap_or_default().to_owned();
        let target = self.follow_parameter(scope, &helper.params[0]);
        let mut inner = scope.to_vec();
        match (name.as_str(), target) {
            ("each", Some((place, Value::Array(items)))) if !items.is_empty() => {
                inner.push((format!("{place}/0"), items[0].clone()));
            }
            ("if", Some((_, Value::Bool(_)))) | ("each" | "if", None) => {}
            (_, target) => self
                .wrong
                .push(format!("{}: {{{{#{name}}}}} of {target:?}", self.template)),
        }
        self.walk_elements(&inner, helper.template.as_ref());
        self.walk_elements(&inner, helper.inverse.as_ref());
    }
}

/// Collects the paths of all values that are neither objects nor lists.
fn collect_leaves(place: &str, value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| collect_leaves(&format!("{place}/{name}"), value, into)),
        Value::Array(items) => items
            .iter()
            .take(1)
            .for_each(|value| collect_leaves(&format!("{place}/0"), value, into)),
        _ => drop(into.insert(place.to_owned())),
    }
}

/// Returns the findings of a template and a sample of its context.
fn lint_template<T: Template>(sample: &T) -> Vec<String> {
    let context = serde_json::to_value(sample).unwrap();
    let mut walk = Walk {
        template: T::NAME,
        used: BTreeSet::new(),
        wrong: Vec::new(),
    };
    let parsed = Parsed::compile(T::SOURCE).unwrap();
    walk.walk_elements(&[(String::new(), context.clone())], Some(&parsed));
    let mut fields = BTreeSet::new();
    collect_leaves("", &context, &mut fields);
    let unused = fields
        .difference(&walk.used)
        .map(|field| format!("{}: {field} is not used", T::NAME));
    walk.wrong.into_iter().chain(unused).collect()
}

fn owned_text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn templates_and_contexts_agree() {
    let directory = || owned_text("/opt/kctl");
    let hook = HookService {
        name: owned_text("a"),
        requires: vec![owned_text("b.service")],
        before: vec![owned_text("c.service")],
        in_container: true,
        image: owned_text("busybox"),
        container: owned_text("a"),
        environment: vec![owned_text("A=b")],
        command: vec![owned_text("true")],
        service: owned_text("ExecStart=/bin/true"),
    };
    let environment = Environment {
        variables: vec![Variable {
            name: owned_text("A"),
            value: owned_text("b"),
        }],
    };
    let found = [
        lint_template(&UserData::sample()),
        lint_template(&NodeupService {
            directory: directory(),
        }),
        lint_template(&CertificatesService {
            directory: directory(),
        }),
        lint_template(&CertificatesTimer {}),
        lint_template(&ProtokubeService {
            directory: directory(),
        }),
        lint_template(&ApiProxyService {
            directory: directory(),
        }),
        lint_template(&ContainerdService {
            binary: owned_text("/usr/bin/containerd"),
            config: owned_text("/etc/c.toml"),
        }),
        lint_template(&KubeletService {
            binary: owned_text("/usr/local/bin/kubelet"),
        }),
        lint_template(&MasqueradeService {
            non_masquerade_cidr: owned_text("100.64.0.0/10"),
        }),
        lint_template(&ImagePulls {
            images: vec![owned_text("busybox")],
        }),
        lint_template(&VpcInterfacesService {}),
        lint_template(&hook),
        lint_template(&environment),
        lint_template(&MountUnit {
            device: owned_text("/dev/nvme1n1"),
            path: owned_text("/data"),
            filesystem: owned_text("ext4"),
            options: owned_text("noatime"),
        }),
        lint_template(&Logrotate {
            path: owned_text("/var/log/etcd.log"),
        }),
        lint_addons(),
    ];
    assert_eq!(found.concat(), Vec::<String>::new());
}

fn lint_addons() -> Vec<String> {
    let (kubelet_api, limits) = samples::sample_rbac();
    let (dns, autoscaler) = samples::core_dns();
    let (config, cloud) = samples::sample_cloud();
    let found = [
        lint_template(&kubelet_api),
        lint_template(&limits),
        lint_template(&NodeRegistration {}),
        lint_template(&samples::sample_access()),
        lint_template(&samples::sample_flannel()),
        lint_template(&samples::sample_corefile()),
        lint_template(&dns),
        lint_template(&autoscaler),
        lint_template(&config),
        lint_template(&cloud),
    ];
    found.concat()
}

#[derive(serde::Serialize)]
struct WrongContext {
    used: bool,
    unused: bool,
    list: Vec<String>,
}

impl Template for WrongContext {
    const NAME: &'static str = "wrong";
    const SOURCE: &'static str = "{{#if misspelt}}{{/if}}{{#if used}}{{sh (sh absent)}}{{/if}}{{#each list}}{{../gone}}{{this}}{{/each}}";
}

#[test]
fn the_lint_finds_what_strict_mode_does_not() {
    let sample = WrongContext {
        used: false,
        unused: true,
        list: vec![owned_text("a")],
    };
    let found = lint_template(&sample);
    for part in ["no misspelt", "no absent", "no gone", "/unused is not used"] {
        assert!(
            found.iter().any(|finding| finding.contains(part)),
            "{part} in {found:?}"
        );
    }
    assert_eq!(found.len(), 4, "{found:?}");
}

#[derive(serde::Serialize)]
struct EmptyContext {}

impl Template for EmptyContext {
    const NAME: &'static str = "missing";
    const SOURCE: &'static str = "{{sh absent}}";
}

#[test]
fn a_missing_value_is_an_error_and_not_an_empty_word() {
    assert!(render(&EmptyContext {}).is_err());
}
