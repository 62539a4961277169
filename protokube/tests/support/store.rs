//! A state store in a folder.

use aws_client::store::Store;
use aws_client::{AccessKey, AccessOptions, Clients};
use std::path::Path;
use tokio::sync::OnceCell;

/// A store in this folder. It neither calls AWS nor reads AWS settings of this host.
pub(crate) async fn store_in(folder: &Path) -> Store {
    static CLIENTS: OnceCell<Clients> = OnceCell::const_new();
    let access = AccessOptions {
        region: Some("eu-west-1".to_owned()),
        keys: Some(AccessKey {
            id: "id".to_owned(),
            secret: "secret".to_owned(),
            session: None,
        }),
        ..AccessOptions::default()
    };
    let clients = CLIENTS.get_or_init(|| Clients::from_access(&access)).await;
    Store::open(&format!("file://{}", folder.display()), clients).unwrap()
}
