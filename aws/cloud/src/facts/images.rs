//! AMIs by the names that specs give them.

use super::any_of;
use crate::CloudClients;
use aws_client::failure::{Classify, local_failure};
use aws_sdk_ec2::types::{self, ArchitectureValues, Filter};
use cloud::facts::Image;
use cloud::supported_image;
use engine::{Class, Failure};
use node::config::Arch;
use std::collections::{BTreeMap, BTreeSet};

const CALL: &str = "ec2:DescribeImages";

/// Publishers by the names that specs may use for their accounts, as kOps knows them (docs/operations/images.md of its repository, of old
/// and new versions).
const OWNERS: [(&str, &str); 13] = [
    ("amazon", "137112412989"),
    ("amazon.com", "137112412989"),
    ("canonical", "099720109477"),
    ("debian", "136693071363"),
    ("debian10", "136693071363"),
    ("debian11", "136693071363"),
    ("flatcar", "075585003325"),
    ("redhat", "309956199498"),
    ("redhat.com", "309956199498"),
    ("rocky", "792107900819"),
    ("rockylinux", "792107900819"),
    ("self", "self"),
    ("ubuntu", "099720109477"),
];

/// What a spec's name of an image says.
enum ImageName<'a> {
    Id(&'a str),
    /// The newest of that name, of that account; `self` is the caller's own.
    Named {
        owner: &'a str,
        name: &'a str,
    },
}

/// The images that exist. One call for ids and one for names, if there are any.
pub(super) async fn collect_images(
    clients: &CloudClients,
    wanted: &BTreeSet<String>,
) -> Result<BTreeMap<String, Image>, Failure> {
    let mut named = BTreeMap::new();
    for name in wanted {
        named.insert(name, parse_image_name(name)?);
    }
    let ids = named.values().filter_map(|one| match one {
        ImageName::Id(id) => Some((*id).to_owned()),
        ImageName::Named { .. } => None,
    });
    let (mut owners, mut names) = (BTreeSet::new(), BTreeSet::new());
    for one in named.values() {
        if let ImageName::Named { owner, name } = one {
            owners.insert((*owner).to_owned());
            names.insert((*name).to_owned());
        }
    }
    let (ids, anybody): (BTreeSet<String>, BTreeSet<String>) = (ids.collect(), BTreeSet::new());
    let (by_id, by_name) = futures::try_join!(
        describe_images(clients, any_of("image-id", &ids), &ids, &anybody),
        describe_images(clients, any_of("name", &names), &names, &owners),
    )?;
    let found = named.into_iter().filter_map(|(key, named)| {
        let raw = match named {
            ImageName::Id(id) => by_id.iter().find(|raw| raw.image_id() == Some(id)),
            ImageName::Named { owner, name } => newest_image(&by_name, owner, name),
        };
        Some((key.clone(), parse_image(raw?)?))
    });
    Ok(found.collect())
}

fn parse_image_name(name: &str) -> Result<ImageName<'_>, Failure> {
    if name.starts_with("ami-") {
        return Ok(ImageName::Id(name));
    }
    if name.starts_with("ssm:") {
        let message = format!("{name}: images by SSM parameter are not supported yet");
        let mut failure = local_failure(Class::Invalid, CALL, message);
        failure.hint = Some(
            "look the parameter up with `aws ssm get-parameter` and set spec.image to the ami- id"
                .to_owned(),
        );
        return Err(failure);
    }
    let (owner, of_owner) = name.split_once('/').unwrap_or(("self", name));
    let known = OWNERS.iter().find(|(alias, _)| *alias == owner);
    let owner = known.map_or(owner, |(_, account)| account);
    // One owner that is none fails the call for all images, with InvalidUserID.Malformed.
    if owner != "self" && (owner.len() != 12 || !owner.bytes().all(|byte| byte.is_ascii_digit())) {
        let message = format!("{name}: {owner} is no owner of images");
        let mut failure = local_failure(Class::Invalid, CALL, message);
        let aliases: Vec<&str> = OWNERS.iter().map(|(alias, _)| *alias).collect();
        failure.hint = Some(format!(
            "name the owner by the 12 digits of its account, or as one of {}",
            aliases.join(", ")
        ));
        return Err(failure);
    }
    Ok(ImageName::Named {
        owner,
        name: of_owner,
    })
}

async fn describe_images(
    clients: &CloudClients,
    by: Filter,
    values: &BTreeSet<String>,
    owners: &BTreeSet<String>,
) -> Result<Vec<types::Image>, Failure> {
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let owners = Some(owners.iter().cloned().collect());
    let call = clients.ec2.describe_images().filters(by);
    let call = call.set_owners(owners.filter(|owners: &Vec<String>| !owners.is_empty()));
    // A name can be old: publishers let images deprecate after two years.
    let pages = call.include_deprecated(true).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call(CALL)
}

/// The newest of that name; two owners may have the same.
fn newest_image<'a>(
    found: &'a [types::Image],
    owner: &str,
    name: &str,
) -> Option<&'a types::Image> {
    let of = |raw: &&types::Image| {
        let owned = owner == "self" || raw.owner_id() == Some(owner);
        owned && raw.name().is_some_and(|raw| matches_pattern(raw, name))
    };
    found
        .iter()
        .filter(of)
        .max_by_key(|raw| raw.creation_date())
}

/// Whether a name is what was asked for, as EC2's filters do: `*` stands for any characters, `?` for one.
fn matches_pattern(name: &str, asked: &str) -> bool {
    let mut chars = asked.chars();
    match chars.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = chars.as_str();
            let ends = name.char_indices().map(|(at, _)| at);
            ends.chain([name.len()]).any(|at| {
                name.get(at..)
                    .is_some_and(|tail| matches_pattern(tail, rest))
            })
        }
        Some(first) => {
            let mut of_name = name.chars();
            of_name
                .next()
                .is_some_and(|one| first == '?' || one == first)
                && matches_pattern(of_name.as_str(), chars.as_str())
        }
    }
}

fn parse_image(raw: &types::Image) -> Option<Image> {
    let owner = raw.owner_id().unwrap_or_default();
    let name = raw.name().unwrap_or_default();
    Some(Image {
        id: raw.image_id()?.to_owned(),
        root_device: raw.root_device_name()?.to_owned(),
        arch: match raw.architecture()? {
            ArchitectureValues::X8664 => Arch::Amd64,
            ArchitectureValues::Arm64 => Arch::Arm64,
            _ => return None,
        },
        unfit: supported_image::unsupported_system(
            owner,
            name,
            raw.platform_details().unwrap_or_default(),
        ),
        system: supported_image::known_system(owner, name).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn stars_and_question_marks_fit_as_in_ec2s_filters() {
        for (name, asked, fit) in [
            ("debian-12-amd64-1", "debian-12-amd64-1", true),
            ("debian-12-amd64-1", "debian-12-*", true),
            ("debian-12-amd64-1", "*-amd64-?", true),
            ("debian-12-amd64-1", "*", true),
            ("debian-12-amd64-1", "debian-12", false),
            ("debian-12-amd64-1", "debian-1?-arm64-*", false),
            ("debian-12-amd64-1", "*-amd64-", false),
        ] {
            assert_eq!(matches_pattern(name, asked), fit, "{name} {asked}");
        }
    }
}
