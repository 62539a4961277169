//! The members of the etcd clusters, as `kctl etcd status` shows them: role, and with term and revision how far each has come.

use super::html::Html;
use super::table::table;
use super::{Report, paragraph};
use crate::ui::etcd::{MEMBER_COLUMNS, member_row};

pub(super) fn section(report: &Report) -> Html {
    let members = match report.members.as_slice() {
        [] => paragraph("No member has reported."),
        members => table(
            "Members of etcd clusters",
            &MEMBER_COLUMNS,
            members.iter().map(member_row),
        ),
    };
    super::section("etcd", "etcd", [members])
}
