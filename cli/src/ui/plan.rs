//! A plan as text. Symbols mark the actions, unchanged objects are hidden, and parts are listed below their whole. Parts of an
//! object that is created or deleted as a whole are only counted.

use super::hashes::short_hashes;
use super::{Paint, Tone, diff};
use cloud::{Cloud, ListingPosition, Section};
use engine::{Action, FieldChange, Id, Kept, Plan, Reason, Step, Why};
use std::collections::{BTreeMap, BTreeSet};

/// A plan and how to show it.
#[derive(Clone, Copy, Debug)]
pub struct PlanView<'a> {
    pub plan: &'a Plan<Cloud>,
    pub wide: bool,
    pub paint: Paint,
    /// Placeholder texts, shown as [`diff::LATE`].
    pub stand_ins: &'a [String],
}

/// Number of equal tag changes from which on they are shown as one line.
const SAME_TAGS: usize = 3;
/// Maximum width of the column of names.
const NAME_WIDTH: usize = 75;

/// Number of instances that are named; the rest is counted.
const NAMED: usize = 3;

/// All sections without the summary; empty if the plan has no steps and keeps nothing.
pub fn render(view: PlanView<'_>) -> String {
    let tagged = same_tags(view);
    let tree = PlanTree::new(view, &tagged);
    let mut text = String::new();
    for (tag, count) in &tagged {
        let sign = view.paint.with_tone(Tone::Change, "~");
        text.push_str(&format!("{sign} tag of {count} objects: {tag}\n"));
    }
    if !tagged.is_empty() {
        text.push('\n');
    }
    for (section, roots) in &tree.sections {
        text.push_str(&view.paint.with_tone(Tone::Strong, section.heading()));
        text.push('\n');
        let width = roots
            .iter()
            .map(|id| shorten(view, &id.to_string()).chars().count())
            .max();
        let width = width.unwrap_or_default().min(NAME_WIDTH);
        for id in roots {
            text.push_str(&tree.root_lines(view, id, width));
        }
        text.push('\n');
    }
    text.push_str(&kept_section(view));
    for stand_in in view.stand_ins {
        text = text.replace(stand_in.as_str(), diff::LATE);
    }
    text
}

/// The section of kept resources, with reasons.
fn kept_section(view: PlanView<'_>) -> String {
    if view.plan.kept.is_empty() {
        return String::new();
    }
    let mut text = view.paint.with_tone(Tone::Strong, "Kept") + "\n";
    for one in &view.plan.kept {
        let why = format!("({})", why_kept(one));
        let why = view.paint.with_tone(Tone::Faint, &why);
        text.push_str(&format!(
            "  = {}  {}  {why}\n",
            one.id,
            shorten(view, &one.physical)
        ));
    }
    text + "\n"
}

fn why_kept(kept: &Kept) -> String {
    const BY_HAND: &str = "only `kctl delete cluster` deletes volumes of etcd; once you are sure that the data is not needed:";
    let by_hand = format!(
        "{BY_HAND} aws ec2 delete-volume --volume-id {}",
        kept.physical
    );
    match &kept.why {
        Why::HoldsData => format!("not in the spec, and {by_hand}"),
        Why::HoldsDataTwice { other } => format!("a second one beside {other}, and {by_hand}"),
        Why::Named { by } => {
            let mut named: Vec<String> = by.iter().take(NAMED).cloned().collect();
            let more = by.len().saturating_sub(NAMED);
            named.extend((more > 0).then(|| format!("{more} more")));
            let (are, they) = if by.len() == 1 {
                ("is", "it knows")
            } else {
                ("are", "they know")
            };
            format!(
                "until {} {are} replaced or updated: {they} the API by its addresses alone",
                join_with_and(&named)
            )
        }
        Why::Belongs { to } => format!("with {to}"),
    }
}

/// `a, b and c`.
fn join_with_and(words: &[String]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// `Plan: 1 to add, 1 to change, 0 to delete.`
pub fn summary_line(plan: &Plan<Cloud>) -> String {
    format!(
        "Plan: {} to add, {} to change, {} to delete.",
        plan.count(Action::Create),
        plan.count(Action::Update),
        plan.count(Action::Delete)
    )
}

/// Tag changes that many objects share, with the number of objects.
type Tagged = BTreeMap<String, usize>;

/// Nouns for parts of a kind: singular, plural.
type PartNouns = (&'static str, &'static str);

/// The steps in the order in which they are shown.
struct PlanTree<'a> {
    sections: Vec<(Section, Vec<Id>)>,
    /// Steps with a line of their own.
    steps: BTreeMap<&'a Id, &'a Step<Cloud>>,
    parts: BTreeMap<Id, Vec<&'a Step<Cloud>>>,
    /// Number of parts by whole and kind, with their nouns.
    counted: BTreeMap<Id, BTreeMap<(&'a str, PartNouns), usize>>,
    tagged: &'a Tagged,
}

impl<'a> PlanTree<'a> {
    fn new(view: PlanView<'a>, tagged: &'a Tagged) -> Self {
        let all = view.plan.steps.iter();
        let mut tree = Self {
            sections: Vec::new(),
            steps: all
                .filter(|(_, step)| !is_only_tagged(step, tagged))
                .collect(),
            parts: BTreeMap::new(),
            counted: BTreeMap::new(),
            tagged,
        };
        let mut roots: BTreeSet<(ListingPosition, Id)> = BTreeSet::new();
        for step in tree.steps.values() {
            let Some(object) = step_object(step) else {
                continue;
            };
            let position = object.listing_position();
            let Some(part) = object.part_of() else {
                roots.insert((position, step.id.clone()));
                continue;
            };
            let above = tree.steps.get(&part.id);
            if above.is_none() {
                roots.insert((ListingPosition(position.0, 0), part.id.clone()));
            }
            let whole = step.action != Action::Update
                && above.is_some_and(|above| above.action == step.action);
            if whole && !view.wide {
                *tree
                    .counted
                    .entry(part.id)
                    .or_default()
                    .entry((step.id.kind(), part.words))
                    .or_default() += 1;
            } else {
                tree.parts.entry(part.id).or_default().push(step);
            }
        }
        for (ListingPosition(section, _), id) in roots {
            match tree.sections.last_mut() {
                Some((last, ids)) if *last == section => ids.push(id),
                _ => tree.sections.push((section, vec![id])),
            }
        }
        tree
    }

    /// The lines of an object, its changes and its parts.
    fn root_lines(&self, view: PlanView<'_>, id: &Id, width: usize) -> String {
        let mut text = match self.steps.get(id) {
            Some(step) => {
                let mut about: Vec<String> =
                    step_object(step).map(Cloud::describe).into_iter().collect();
                about.extend(self.counted.get(id).into_iter().flatten().map(part_count));
                about.retain(|words| !words.is_empty());
                let name = format!("{:<width$}", shorten(view, &id.to_string()));
                self.step_lines(view, step, "  ", &name, &about.join(", "))
            }
            None => format!("    {id}\n"),
        };
        for part in self.parts.get(id).into_iter().flatten() {
            let about = shorten(
                view,
                &step_object(part).map(Cloud::describe).unwrap_or_default(),
            );
            let name = shorten(view, &part.id.to_string());
            let (name, about) = match (about.is_empty(), view.wide) {
                (true, _) => (name, String::new()),
                (false, true) => (about, view.paint.with_tone(Tone::Faint, &name)),
                (false, false) => (about, String::new()),
            };
            text.push_str(&self.step_lines(view, part, "      ", &name, &about));
        }
        text
    }

    /// The lines of a step and its changes.
    fn step_lines(
        &self,
        view: PlanView<'_>,
        step: &Step<Cloud>,
        indent: &str,
        name: &str,
        about: &str,
    ) -> String {
        let (sign, tone) = match step.action {
            Action::Create => ("+", Tone::Add),
            Action::Update => ("~", Tone::Change),
            Action::Delete => ("-", Tone::Delete),
        };
        let why = reason_text(&step.reason)
            .map(|why| view.paint.with_tone(Tone::Faint, &format!("({why})")));
        let words = [Some(about.to_owned()), why].into_iter().flatten();
        let words: Vec<String> = words.filter(|words| !words.is_empty()).collect();
        let line = format!(
            "{indent}{} {name}  {}",
            view.paint.with_tone(tone, sign),
            words.join("  ")
        );
        let mut text = line.trim_end().to_owned() + "\n";
        let own = |change: &&FieldChange| !is_tagged(change, self.tagged);
        for change in step.changes.iter().filter(own) {
            for (number, line) in diff::change_lines(change, view.wide, view.paint)
                .iter()
                .enumerate()
            {
                let sign = if number == 0 { "~ " } else { "  " };
                text.push_str(&format!("{indent}    {sign}{line}\n"));
            }
        }
        text
    }
}

/// The object of a step: the desired one, or the observed one of a deletion.
fn step_object(step: &Step<Cloud>) -> Option<&Cloud> {
    let before = step.before.as_ref().map(|before| &before.resource);
    step.after.as_ref().or(before)
}

/// Replaces placeholders and, unless `wide`, shortens hashes.
fn shorten(view: PlanView<'_>, text: &str) -> String {
    let mut text = text.to_owned();
    for stand_in in view.stand_ins {
        text = text.replace(stand_in.as_str(), diff::LATE);
    }
    if view.wide {
        return text;
    }
    short_hashes(&text)
}

fn part_count(((_, (one, many)), count): (&(&str, PartNouns), &usize)) -> String {
    format!("{count} {}", if *count == 1 { one } else { many })
}

/// The reason of a step, unless its symbol implies it.
fn reason_text(reason: &Reason) -> Option<String> {
    match reason {
        Reason::Missing | Reason::Differs | Reason::Unwanted => None,
        Reason::Follows { of } => {
            let of: Vec<String> = of.iter().map(ToString::to_string).collect();
            Some(format!("follows {}", of.join(", ")))
        }
        Reason::Duplicate => Some("there are two of it, and this one is not used".to_owned()),
        Reason::Replaced { by } => Some(format!("replaced by {by}")),
    }
}

/// Tag changes that many updates share, shown once. Empty with `wide`.
fn same_tags(view: PlanView<'_>) -> Tagged {
    let mut tagged = Tagged::new();
    if view.wide {
        return tagged;
    }
    for change in view
        .plan
        .steps
        .values()
        .flat_map(|step| &step.changes)
        .filter_map(tag_change)
    {
        *tagged.entry(change).or_default() += 1;
    }
    tagged.retain(|_, count| *count >= SAME_TAGS);
    tagged
}

fn is_tagged(change: &FieldChange, tagged: &Tagged) -> bool {
    tag_change(change).is_some_and(|change| tagged.contains_key(&change))
}

fn is_only_tagged(step: &Step<Cloud>, tagged: &Tagged) -> bool {
    !step.changes.is_empty() && step.changes.iter().all(|change| is_tagged(change, tagged))
}

/// A tag change as text; `None` for other fields. Auto Scaling groups have their tags in a list.
fn tag_change(change: &FieldChange) -> Option<String> {
    let rest = change.field.strip_prefix("tags")?;
    let tag = rest
        .strip_prefix('.')
        .or_else(|| rest.strip_prefix('[')?.strip_suffix(']'))?;
    let value = |value: &serde_json::Value| diff::value_text(value.get("value").unwrap_or(value));
    let (before, after) = (value(&change.before), value(&change.after));
    Some(match (change.before.is_null(), change.after.is_null()) {
        (true, _) => format!("+ {tag}={after}"),
        (_, true) => format!("- {tag}={before}"),
        _ => format!("{tag}={before} -> {after}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud::{
        EbsVolume, IamRole, RuleSource, SecurityGroup, SecurityGroupRule, Subnet, Tags, Vpc,
    };
    use engine::{Observed, Ref, Resource};
    use serde_json::json;

    const NAME: &str = "demo.example.com";

    fn test_vpc() -> Cloud {
        Cloud::Vpc(Vpc {
            name: NAME.into(),
            cidr_block: "172.20.0.0/16".into(),
            amazon_provided_ipv6_cidr_block: true,
            enable_dns_hostnames: true,
            enable_dns_support: true,
            tags: Tags::new(),
        })
    }

    fn test_subnet(zone: &str) -> Cloud {
        Cloud::Subnet(Subnet {
            name: format!("{zone}.{NAME}"),
            vpc_id: Ref::own(&test_vpc().id()),
            availability_zone: zone.into(),
            cidr_block: Some("172.20.0.0/18".into()),
            ipv6_cidr_block: None,
            assign_ipv6_address_on_creation: false,
            enable_dns64: false,
            private_dns_hostname_type_on_launch: "resource-name".into(),
            enable_resource_name_dns_a_record_on_launch: true,
            enable_resource_name_dns_aaaa_record_on_launch: false,
            tags: Tags::from([("SubnetType".into(), "Public".into())]),
        })
    }

    fn test_group() -> Cloud {
        Cloud::SecurityGroup(SecurityGroup {
            group_name: format!("nodes.{NAME}"),
            description: "Security group for nodes".into(),
            vpc_id: Ref::own(&test_vpc().id()),
            tags: Tags::new(),
        })
    }

    fn test_rule(port: i32, from: &str) -> Cloud {
        Cloud::SecurityGroupRule(SecurityGroupRule {
            name: format!("from-{from}-ingress-tcp-{port}to{port}-nodes.{NAME}"),
            group_id: Ref::own(&test_group().id()),
            is_egress: false,
            ip_protocol: "tcp".into(),
            from_port: port,
            to_port: port,
            source: RuleSource::CidrIpv4(from.into()),
        })
    }

    fn test_role() -> Cloud {
        Cloud::IamRole(IamRole {
            role_name: format!("nodes.{NAME}"),
            assume_role_policy_document: json!({}),
            permissions_boundary: None,
            tags: Tags::new(),
        })
    }

    fn test_volume() -> Cloud {
        Cloud::EbsVolume(EbsVolume {
            name: format!("a.etcd-main.{NAME}"),
            availability_zone: "eu-west-1a".into(),
            size: 20,
            volume_type: "gp3".into(),
            iops: None,
            throughput: None,
            encrypted: true,
            kms_key_id: None,
            tags: Tags::new(),
        })
    }

    fn test_step(action: Action, object: &Cloud, changes: Vec<FieldChange>) -> Step<Cloud> {
        let observed = Observed {
            resource: object.clone(),
            physical: "x-1".into(),
            attrs: BTreeMap::default(),
            created: None,
            uses: BTreeSet::new(),
            in_use: false,
        };
        Step {
            id: object.id(),
            action,
            reason: match action {
                Action::Create => Reason::Missing,
                Action::Update => Reason::Differs,
                Action::Delete => Reason::Unwanted,
            },
            before: (action != Action::Create).then_some(observed),
            after: (action != Action::Delete).then(|| object.clone()),
            changes,
            needs: BTreeSet::new(),
        }
    }

    fn test_change(
        field: &str,
        before: serde_json::Value,
        after: serde_json::Value,
    ) -> FieldChange {
        FieldChange {
            field: field.into(),
            before,
            after,
        }
    }

    fn rendered_plan(steps: Vec<Step<Cloud>>, wide: bool) -> String {
        rendered_with_kept(steps, Vec::new(), wide)
    }

    fn rendered_with_kept(steps: Vec<Step<Cloud>>, kept: Vec<Kept>, wide: bool) -> String {
        let steps = steps
            .into_iter()
            .map(|step| (step.id.clone(), step))
            .collect();
        let plan = Plan {
            format: 1,
            steps,
            kept,
        };
        let view = PlanView {
            plan: &plan,
            wide,
            paint: Paint::default(),
            stand_ins: &[],
        };
        format!("{}{}\n", render(view), summary_line(&plan))
    }

    #[test]
    fn a_new_cluster_counts_the_parts_of_what_is_new() {
        let all = [
            test_vpc(),
            test_subnet("eu-west-1a"),
            test_group(),
            test_rule(22, "0.0.0.0/0"),
            test_rule(443, "10.0.0.0/8"),
            test_role(),
            test_volume(),
        ];
        let steps = || {
            all.iter()
                .map(|object| test_step(Action::Create, object, Vec::new()))
                .collect()
        };
        insta::assert_snapshot!("create", rendered_plan(steps(), false));
        insta::assert_snapshot!("create_wide", rendered_plan(steps(), true));
    }

    #[test]
    fn a_changed_rule_stands_under_its_unchanged_group() {
        let steps = vec![
            test_step(Action::Create, &test_rule(22, "10.0.0.0/8"), Vec::new()),
            test_step(Action::Delete, &test_rule(22, "0.0.0.0/0"), Vec::new()),
            test_step(
                Action::Update,
                &test_volume(),
                vec![test_change("size", json!(20), json!(40))],
            ),
        ];
        insta::assert_snapshot!("change", rendered_plan(steps, false));
    }

    #[test]
    fn what_is_kept_stands_last_with_its_id_and_why() {
        let kept = |physical: &str, why: Why| Kept {
            id: test_volume().id(),
            physical: physical.into(),
            why,
        };
        let by = |count: usize| (1..=count).map(|n| format!("i-{n}")).collect();
        let all = vec![
            kept("vol-1", Why::HoldsData),
            kept(
                "vol-2",
                Why::HoldsDataTwice {
                    other: "vol-3".into(),
                },
            ),
            kept("arn-1", Why::Named { by: by(1) }),
            kept("arn-2", Why::Named { by: by(3) }),
            kept("arn-3", Why::Named { by: by(9) }),
            kept(
                "arn-4",
                Why::Belongs {
                    to: test_group().id(),
                },
            ),
        ];
        let steps = vec![test_step(Action::Create, &test_vpc(), Vec::new())];
        insta::assert_snapshot!("kept", rendered_with_kept(steps, all, false));
    }

    #[test]
    fn the_same_tag_on_everything_is_one_line() {
        let tag = || vec![test_change("tags.Owner", json!(null), json!("platform"))];
        let mut steps: Vec<_> = [test_vpc(), test_group(), test_role()]
            .iter()
            .map(|object| test_step(Action::Update, object, tag()))
            .collect();
        let both = [tag(), vec![test_change("size", json!(20), json!(40))]].concat();
        steps.push(test_step(Action::Update, &test_volume(), both));
        // Its group is not shown otherwise, but is there for the rule to stand under.
        steps.push(test_step(
            Action::Create,
            &test_rule(22, "10.0.0.0/8"),
            Vec::new(),
        ));
        insta::assert_snapshot!("tags", rendered_plan(steps, false));
    }
}
