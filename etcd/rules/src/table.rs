//! The tables by which a member decides: the first row that fits.

/// A row of a table. Its text stands in `docs/control-plane.md`.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "a test compares the texts with the page")
)]
pub(super) struct Row<F> {
    /// What the volume holds, and what else is so.
    pub when: &'static str,
    /// What is done.
    pub then: &'static str,
    /// The step; `None`: the row does not fit.
    pub step: F,
}
