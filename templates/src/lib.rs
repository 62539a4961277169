//! Text that machines run or read and that has no typed form here: shell, systemd units, logrotate, addons. Each
//! template has a typed context; [`render`] is the only way to text, helpers do the quoting.

pub mod addons;
mod boot;
mod helpers;
#[cfg(test)]
mod paths_test;
mod units;

pub use boot::{Heredoc, UserData};
pub use helpers::{corefile, heredoc, sh, systemd, systemd_word};
pub use units::{
    CertificatesService, CertificatesTimer, ContainerdService, Environment, HookService,
    KubeletService, Logrotate, MasqueradeService, NodeupService, ProtokubeService, Variable,
    VolumeMount,
};

use serde::Serialize;

/// A template's context.
///
/// Every field is always serialized: a field that is left out could not be told from one that is misspelt.
pub trait Template: Serialize {
    /// Its file, for messages.
    const NAME: &'static str;
    /// Its text.
    const SOURCE: &'static str;
}

/// A template could not be rendered: a path that its context does not have, or a value that cannot be quoted.
#[derive(Debug, thiserror::Error)]
#[error("could not render {template}")]
pub struct Error {
    template: &'static str,
    #[source]
    source: Box<handlebars::RenderError>,
}

/// Renders a template with its context. Nothing is escaped by default; what needs quotes says so with a helper:
/// `{{sh value}}` for the shell, `{{systemd value}}` for units and environment files, `{{heredoc value}}`,
/// `{{corefile value}}`, and `{{yaml value}}`, which takes values of every sort.
pub fn render<T: Template>(context: &T) -> Result<String, Error> {
    let mut engine = handlebars::Handlebars::new();
    engine.set_strict_mode(true);
    engine.register_escape_fn(handlebars::no_escape);
    helpers::register(&mut engine);
    let rendered = engine.render_template(T::SOURCE, context);
    rendered.map_err(|source| Error {
        template: T::NAME,
        source: Box::new(source),
    })
}
