//! A state store in a folder.

use aws_client::store::Store;
use aws_client::{Access, Clients, Keys};
use std::path::Path;
use tokio::sync::OnceCell;

/// A store in this folder. It neither calls AWS nor reads AWS settings of this host.
pub(crate) async fn store_in(folder: &Path) -> Store {
    static CLIENTS: OnceCell<Clients> = OnceCell::const_new();
    let access = Access {
        region: Some("eu-west-1".to_owned()),
        keys: Some(Keys {
            id: "id".to_owned(),
            secret: "secret".to_owned(),
            session: None,
        }),
        ..Access::default()
    };
    let clients = CLIENTS.get_or_init(|| Clients::reach(&access)).await;
    Store::open(&format!("file://{}", folder.display()), clients).unwrap()
}
