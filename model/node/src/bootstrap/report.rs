//! Checks boot reports of workers. Reports are shown on operators' terminals later.

use super::Refusal;
use super::untrusted_text::untrusted_excerpt;
use crate::report::{BootReport, REPORT_FORMAT};
use crate::terminal::is_terminal_control;

/// Limit of a report, bytes.
pub const REPORT_LIMIT: usize = 64 * 1024;

/// Parses a report, checks that it belongs to the instance, cluster and group, and replaces terminal control characters.
pub fn check_report(
    body: &[u8],
    instance: &str,
    cluster: &str,
    group: &str,
) -> Result<BootReport, Refusal> {
    let wrong = |why: &str| Refusal::Request {
        why: why.to_owned(),
    };
    let mut report: BootReport =
        serde_json::from_slice(body).map_err(|error| Refusal::Request {
            why: format!(
                "is not a boot report: {}",
                untrusted_excerpt(&error.to_string())
            ),
        })?;
    if report.format != REPORT_FORMAT {
        return Err(wrong("is a boot report of an unknown format"));
    }
    if report.instance != instance {
        return Err(wrong("is the boot report of another instance"));
    }
    if report.cluster != cluster {
        return Err(wrong("is the boot report of another cluster"));
    }
    if report.group != group {
        return Err(Refusal::OtherGroup {
            own: group.to_owned(),
            asked: untrusted_excerpt(&report.group),
        });
    }
    let texts = [
        &mut report.release,
        &mut report.node_config,
        &mut report.started,
    ];
    let stages = report.stages.iter_mut().map(|stage| &mut stage.name);
    let changed = report.changed.iter_mut();
    let said = stages.chain(changed).chain(&mut report.error);
    for text in texts.into_iter().chain(said) {
        *text = text.replace(is_terminal_control, " ");
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_bytes(instance: &str, error: &str) -> Vec<u8> {
        let report = BootReport {
            format: REPORT_FORMAT,
            instance: instance.to_owned(),
            cluster: "a.example.com".to_owned(),
            group: "nodes".to_owned(),
            release: "0.1.0".to_owned(),
            fips: false,
            node_config: "0".repeat(64),
            started: "2030-01-01T00:00:00Z".to_owned(),
            stages: Vec::new(),
            changes: 1,
            changed: vec![format!("file/{error}")],
            error: Some(error.to_owned()),
        };
        serde_json::to_vec(&report).unwrap()
    }

    #[test]
    fn a_report_is_of_the_machine_that_brings_it() {
        let check = |body: &[u8]| check_report(body, "i-1", "a.example.com", "nodes");
        assert!(check(&report_bytes("i-1", "")).is_ok());
        assert!(check(&report_bytes("i-2", "")).is_err());
        assert!(check(b"{}").is_err());
        assert!(check_report(&report_bytes("i-1", ""), "i-1", "b.example.com", "nodes").is_err());
        assert!(check_report(&report_bytes("i-1", ""), "i-1", "a.example.com", "others").is_err());
    }

    #[test]
    fn a_report_cannot_steer_a_terminal() {
        let body = report_bytes("i-1", "no disk\n\u{1b}[2Jcleared\u{9b}m\u{202e}");
        let report = check_report(&body, "i-1", "a.example.com", "nodes").unwrap();
        assert_eq!(report.error.unwrap(), "no disk\n [2Jcleared m ");
        assert_eq!(report.changed, ["file/no disk\n [2Jcleared m "]);
    }
}
