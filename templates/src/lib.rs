//! Templates of texts that have no typed form in kctl: shell scripts, systemd units, logrotate, addons. Each template has a typed
//! context; [`render`] is the only way to turn it into text, and helpers do the quoting.

pub mod addons;
mod boot;
mod helpers;
#[cfg(test)]
mod paths_test;
mod units;

pub use boot::{Heredoc, UserData};
pub use helpers::{here_document, quote_corefile, quote_sh, quote_systemd, quote_systemd_word};
pub use units::{
    ApiProxyService, CertificatesService, CertificatesTimer, ContainerdService, Environment,
    HookService, ImagePulls, KubeletService, Logrotate, MasqueradeService, MountUnit,
    NodeupService, ProtokubeService, Variable, VpcInterfacesService,
};

use handlebars::{Handlebars, RenderError};
use serde::Serialize;
use std::sync::{LazyLock, PoisonError, RwLock};

/// The context of a template.
///
/// Every field is always serialized, because a missing field could not be distinguished from a misspelt one.
pub trait Template: Serialize {
    /// File name of the template, for messages.
    const NAME: &'static str;
    /// Text of the template.
    const SOURCE: &'static str;
}

/// A template could not be rendered, because it names a path that its context lacks or quotes a value that is not text.
#[derive(Debug, thiserror::Error)]
#[error("could not render {template}")]
pub struct Error {
    template: &'static str,
    #[source]
    source: Box<handlebars::RenderError>,
}

/// Parsed templates by their names. Most are rendered once for each instance group, and parsing takes longer than rendering.
static ENGINE: LazyLock<RwLock<Handlebars<'static>>> = LazyLock::new(|| {
    let mut engine = Handlebars::new();
    engine.set_strict_mode(true);
    engine.register_escape_fn(handlebars::no_escape);
    helpers::register_helpers(&mut engine);
    RwLock::new(engine)
});

/// Renders a template with its context. Nothing is escaped by default; templates quote explicitly with helpers:
/// `{{sh value}}` for the shell, `{{systemd value}}` for units and environment files, `{{heredoc value}}`,
/// `{{corefile value}}`, and `{{yaml value}}`, which takes values of every sort.
pub fn render<T: Template>(context: &T) -> Result<String, Error> {
    let failed = |source: RenderError| Error {
        template: T::NAME,
        source: Box::new(source),
    };
    let engine = ENGINE.read().unwrap_or_else(PoisonError::into_inner);
    if engine.has_template(T::NAME) {
        return engine.render(T::NAME, context).map_err(failed);
    }
    drop(engine);
    let mut engine = ENGINE.write().unwrap_or_else(PoisonError::into_inner);
    let parsed = engine.register_template_string(T::NAME, T::SOURCE);
    parsed.map_err(|error| failed(error.into()))?;
    engine.render(T::NAME, context).map_err(failed)
}
