//! Findings are fit to be shown.

use spec::read::Problem;

/// Every one says what is wrong and what to do next, and moves no terminal's cursor.
pub fn fit_to_be_shown(problems: &[Problem]) {
    assert!(!problems.is_empty(), "refused without a finding");
    for problem in problems {
        let shown = problem.render();
        assert!(!problem.message.trim().is_empty(), "no cause: {shown}");
        assert!(problem.hint.is_some(), "no next step: {shown}");
        let moves = |c: char| c.is_control() && c != '\n';
        assert!(!shown.contains(moves), "control characters: {shown:?}");
    }
}
