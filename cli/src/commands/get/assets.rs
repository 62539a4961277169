//! `kctl get assets`: the files and images that the instances of a cluster need.

use super::copy_assets;
use crate::args::{GetAssets, ReportFormat};
use crate::commands::assets::ClusterAssets;
use crate::commands::document::print_document;
use crate::commands::observe::observe_published;
use crate::commands::session::Session;
use crate::error::CommandError;
use crate::ui::table;
use serde::Serialize;

/// As kOps prints them.
#[derive(Serialize)]
struct ListedAssets<'a> {
    images: Vec<ListedImage<'a>>,
    files: Vec<ListedFile<'a>>,
}

#[derive(Serialize)]
struct ListedImage<'a> {
    canonical: &'a str,
    download: &'a str,
}

#[derive(Serialize)]
struct ListedFile<'a> {
    canonical: &'a str,
    download: &'a str,
    sha: &'a str,
}

/// Shows the assets of a cluster; with `--copy`, copies first what is missing.
pub async fn run(args: &GetAssets, session: &Session<'_>) -> Result<(), CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let observed = observe_published(&name, session).await?;
    let assets = ClusterAssets::with_downloads(&observed, session).await?;
    if args.copy {
        let spec = &observed.state.cluster.object.spec;
        let places = spec.assets.clone().unwrap_or_default();
        Box::pin(copy_assets::copy(&assets, &places, args.overwrite, session)).await?;
    }
    let listed = ListedAssets::new(&assets);
    match args.output {
        ReportFormat::Table => session.shell.print_result(&listed.to_tables()),
        other => print_document(&listed, other, session.shell),
    }
}

impl<'a> ListedAssets<'a> {
    fn new(assets: &'a ClusterAssets) -> Self {
        let image = |(canonical, download): (&'a String, &'a String)| ListedImage {
            canonical,
            download,
        };
        Self {
            images: assets.images.iter().map(image).collect(),
            files: assets
                .files
                .iter()
                .map(|file| ListedFile {
                    canonical: &file.published,
                    download: &file.download,
                    sha: &file.sha256,
                })
                .collect(),
        }
    }

    fn to_tables(&self) -> String {
        let row = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect();
        let images = self.images.iter();
        let images: Vec<Vec<String>> = images
            .map(|image| row(&[image.canonical, image.download]))
            .collect();
        let files = self.files.iter();
        let files: Vec<Vec<String>> = files
            .map(|file| row(&[file.canonical, file.download, file.sha]))
            .collect();
        let images = table::render(&["CANONICAL", "DOWNLOAD"], &images);
        let files = table::render(&["CANONICAL", "DOWNLOAD", "SHA"], &files);
        format!("{images}\n{files}")
    }
}
