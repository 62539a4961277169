//! The commands of stories: words to calls.

use super::output;
use super::story::Story;
use simcloud::{Faults, Kill};
use spec::create::{CreateOptions, Topology};

/// Every command, as an error lists them.
const COMMANDS: &str = "\
    create cluster NAME --zones ZONES [--control-plane-zones ZONES] [--topology public|private]
    edit cluster [--set PATH=VALUE]... [--unset PATH]...
    edit instancegroup NAME [--set PATH=VALUE]... [--unset PATH]...
    copy instancegroup NAME NEW-NAME
    delete instancegroup NAME
    plan
    apply [--die-after CALLS]
    delete cluster [--yes [--die-after CALLS]]
    check
    show instances
    show KIND
    etcd forms
    aws terminate INSTANCE
    aws lose-zone ZONE
    aws throttle PERCENT
    aws lose-answers PERCENT
    aws deny KIND
    aws quota KIND COUNT
    aws recover
    somebody deletes KIND/NAME|ID
    somebody has KIND/NAME
    somebody uses KIND/NAME";

/// Runs a command and returns what it prints. What kctl refuses is printed; `Err` is a mistake in the story.
pub fn run_command(story: &mut Story, command: &str) -> Result<String, String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["create", "cluster", name, flags @ ..] => {
            Ok(story.create_cluster(&create_options(name, flags)?))
        }
        ["edit", "cluster", edits @ ..] => story.edit_cluster(&flag_pairs(edits)?),
        ["edit", "instancegroup", name, edits @ ..] => story.edit_group(name, &flag_pairs(edits)?),
        ["copy", "instancegroup", name, new] => story.copy_group(name, new),
        ["delete", "instancegroup", name] => story.delete_group(name),
        ["plan"] => story.print_plan(false),
        ["apply"] => story.apply_update(false, None),
        ["apply", "--die-after", calls] => story.apply_update(false, Some(parse_kill(calls)?)),
        ["delete", "cluster"] => story.print_plan(true),
        ["delete", "cluster", "--yes"] => story.apply_update(true, None),
        ["delete", "cluster", "--yes", "--die-after", calls] => {
            story.apply_update(true, Some(parse_kill(calls)?))
        }
        ["check"] => Ok(story.check_cloud()),
        ["show", "instances"] => Ok(story.instances.show_instances(&story.cloud.state.borrow())),
        ["show", kind] => {
            let kind = story.find_kind(kind)?;
            Ok(output::show_objects(&story.cloud.state.borrow(), kind))
        }
        ["etcd", "forms"] => story.form_etcd(),
        ["aws", event @ ..] if run_event(story, event)? => Ok(String::new()),
        ["somebody", "deletes", id] => story.delete_by_hand(id),
        ["somebody", "has", id] => story.add_foreign(id),
        ["somebody", "uses", id] => story.add_foreign_user(id),
        _ => Err(format!(
            "there is no command {command:?}; write one of\n{COMMANDS}\n"
        )),
    }
}

/// What happens in AWS; false: there is no such event.
fn run_event(story: &mut Story, event: &[&str]) -> Result<bool, String> {
    match event {
        ["throttle", percent] => {
            let percent = parse_number(percent)?;
            story.change_faults(|faults| faults.throttled = percent);
        }
        ["lose-answers", percent] => {
            let percent = parse_number(percent)?;
            story.change_faults(|faults| faults.unknown = percent);
        }
        ["deny", kind] => {
            let kind = story.find_kind(kind)?;
            story.change_faults(|faults| faults.denied = Some(kind));
        }
        ["quota", kind, count] => {
            let count = usize::try_from(parse_number(count)?).unwrap_or(usize::MAX);
            let quota = Some((story.find_kind(kind)?, count));
            story.change_faults(|faults| faults.quota = quota);
        }
        ["recover"] => story.change_faults(|faults| *faults = Faults::default()),
        ["terminate", instance] => story.terminate_instance(instance)?,
        ["lose-zone", zone] => story.lose_zone(zone),
        _ => return Ok(false),
    }
    Ok(true)
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number"))
}

/// The process dies with the call of that number, once that has taken effect.
fn parse_kill(calls: &str) -> Result<Kill, String> {
    let call = parse_number(calls)?;
    Ok(Kill { call, after: true })
}

/// `--flag value` pairs.
fn flag_pairs<'a>(words: &[&'a str]) -> Result<Vec<(&'a str, &'a str)>, String> {
    let pair = |pair: &[&'a str]| match pair {
        [flag, value] => Ok((*flag, *value)),
        _ => Err(format!("{} has no value", pair.join(" "))),
    };
    words.chunks(2).map(pair).collect()
}

fn create_options(name: &str, flags: &[&str]) -> Result<CreateOptions, String> {
    let mut options = CreateOptions {
        name: name.to_owned(),
        state_store: "s3://store".to_owned(),
        ..CreateOptions::default()
    };
    for (flag, value) in flag_pairs(flags)? {
        let list = || value.split(',').map(str::to_owned).collect();
        match (flag, value) {
            ("--zones", _) => options.zones = list(),
            ("--control-plane-zones", _) => options.control_plane_zones = list(),
            ("--topology", "private") => options.topology = Topology::Private,
            ("--topology", "public") => options.topology = Topology::Public,
            _ => {
                return Err(format!(
                    "{flag} is not a flag of stories, or {value} not its value; write\n{COMMANDS}\n"
                ));
            }
        }
    }
    Ok(options)
}
