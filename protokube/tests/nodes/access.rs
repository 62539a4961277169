//! protokube is an administrator of the API only while its own user has no rights.

use crate::fakes::api::FakeApi;
use crate::store::store_in;
use aws_client::store::Expect;
use node::pki::{KeyAlgorithm, SystemKeys, keyset_path, mint_keyset, write_keyset};
use protokube::api::ApiAccess;
use protokube::identity::system_clock;
use tempfile::TempDir;
use time::OffsetDateTime;

async fn access_to(api: &FakeApi, folder: &TempDir) -> ApiAccess {
    let store = store_in(folder.path()).await;
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    let authority = mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
    let text = write_keyset(&authority).unwrap();
    let text = text.reveal().as_bytes().to_vec();
    let key = keyset_path("kubernetes-ca");
    store.put(&key, text, Expect::Any).await.unwrap();
    ApiAccess::issuing(&store, api.start().await, system_clock())
}

#[tokio::test]
async fn roles_run_as_protokubes_own_user_once_the_addon_is_applied() {
    let (api, folder) = (FakeApi::new(), TempDir::new().unwrap());
    let granted = access_to(&api, &folder).await.client().await.unwrap();
    assert!(granted.granted);
    api.lock_objects().without_rights = true;
    let access = access_to(&api, &folder).await;
    assert!(!access.client().await.unwrap().granted);
    // The answer is kept for a minute, and no longer: whoever asks then is protokube's own user.
    api.lock_objects().without_rights = false;
    assert!(!access.client().await.unwrap().granted);
    let again = access_to(&api, &folder).await;
    assert!(again.client().await.unwrap().granted);
}

#[tokio::test]
async fn without_the_api_server_nobody_gets_a_client() {
    let (api, folder) = (FakeApi::new(), TempDir::new().unwrap());
    let store = store_in(folder.path()).await;
    drop(access_to(&api, &folder).await);
    let access = ApiAccess::issuing(&store, "https://127.0.0.1:9".to_owned(), system_clock());
    assert!(access.client().await.is_err());
}
