//! A fake API server, as far as addons need one: discovery, server-side apply, ConfigMaps with versions, deletion
//! with preconditions. Tests can make requests fail.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// A kind: name, plural, whether it is namespaced.
type Kind = (&'static str, &'static str, bool);

pub(crate) const CORE: [Kind; 3] = [
    ("ConfigMap", "configmaps", true),
    ("Namespace", "namespaces", false),
    ("ServiceAccount", "serviceaccounts", true),
];
pub(crate) const APPS: [Kind; 2] = [
    ("DaemonSet", "daemonsets", true),
    ("Deployment", "deployments", true),
];

/// Changes objects when a request with method and path arrives.
type InterferingWrite = Box<dyn FnMut(&mut BTreeMap<String, Value>, &str) + Send>;

#[derive(Default)]
pub(crate) struct ServerState {
    /// Kinds by API version.
    pub kinds: BTreeMap<String, Vec<Kind>>,
    pub objects: BTreeMap<String, Value>,
    /// Received requests: method, and path with query.
    pub requests: Vec<String>,
    /// Failures to return: method, end of the path, status, remaining count.
    pub failures: Vec<(Method, String, u16, usize)>,
    /// Called before each request is answered, to change objects concurrently.
    pub meanwhile: Option<InterferingWrite>,
    version: u64,
}

/// A running server. It ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct FakeApiServer {
    pub server_state: Arc<Mutex<ServerState>>,
    address: std::net::SocketAddr,
}

impl FakeApiServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server_state = ServerState {
            kinds: [
                ("v1".into(), CORE.to_vec()),
                ("apps/v1".into(), APPS.to_vec()),
            ]
            .into(),
            ..ServerState::default()
        };
        let server = Self {
            server_state: Arc::new(Mutex::new(server_state)),
            address,
        };
        let server_state = server.server_state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server_state = server_state.clone();
                let serve = hyper::service::service_fn(move |request| {
                    handle_connection(server_state.clone(), request)
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), serve),
                );
            }
        });
        server
    }

    pub(crate) fn client(&self) -> Client {
        let url = format!("http://{}", self.address).parse().unwrap();
        Client::try_from(Config::new(url)).unwrap()
    }

    /// The requests since the last call, without queries.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        let requests = std::mem::take(&mut self.server_state.lock().unwrap().requests);
        let bare = requests
            .iter()
            .map(|one| one.split('?').next().unwrap_or_default());
        bare.map(str::to_owned).collect()
    }

    /// The last part of the paths of all objects except the record.
    pub(crate) fn object_names(&self) -> Vec<String> {
        let server_state = self.server_state.lock().unwrap();
        let paths = server_state
            .objects
            .keys()
            .filter(|path| !path.ends_with("/kctl-addons"));
        paths
            .filter_map(|path| path.rsplit('/').next())
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn find_object(&self, name: &str) -> Option<Value> {
        let server_state = self.server_state.lock().unwrap();
        let mut found = server_state
            .objects
            .iter()
            .filter(|(path, _)| path.ends_with(&format!("/{name}")));
        found.next().map(|(_, object)| object.clone())
    }

    pub(crate) fn change_object(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut server_state = self.server_state.lock().unwrap();
        let mut found = server_state
            .objects
            .iter_mut()
            .filter(|(path, _)| path.ends_with(&format!("/{name}")));
        change(found.next().unwrap().1);
    }

    /// Serves this namespaced kind at this path from now on, and no other of its API version.
    pub(crate) fn serve_kind(&self, api_version: &str, kind: &'static str, path: &'static str) {
        let kinds = vec![(kind, path, true)];
        let mut server_state = self.server_state.lock().unwrap();
        server_state.kinds.insert(api_version.to_owned(), kinds);
    }

    pub(crate) fn fail_requests(&self, method: Method, path: &str, status: u16, times: usize) {
        let mut server_state = self.server_state.lock().unwrap();
        server_state
            .failures
            .push((method, path.to_owned(), status, times));
    }
}

async fn handle_connection(
    server_state: Arc<Mutex<ServerState>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let (status, value) = {
        let mut server_state = server_state.lock().unwrap();
        let asked = parts.uri.to_string();
        server_state
            .requests
            .push(format!("{} {asked}", parts.method));
        if let Some(mut meanwhile) = server_state.meanwhile.take() {
            meanwhile(
                &mut server_state.objects,
                &format!("{} {path}", parts.method),
            );
            server_state.meanwhile = Some(meanwhile);
        }
        let query = parts.uri.query().unwrap_or_default();
        server_state.answer_request(&parts.method, &path, query, &body)
    };
    let mut response = Response::new(Full::from(value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let json = hyper::header::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, json);
    Ok(response)
}

fn error_response(code: u16, message: &str) -> (u16, Value) {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    });
    (code, status)
}

impl ServerState {
    fn answer_request(
        &mut self,
        method: &Method,
        path: &str,
        query: &str,
        body: &Value,
    ) -> (u16, Value) {
        let mut failures = self.failures.iter_mut();
        if let Some(failure) =
            failures.find(|one| one.0 == *method && path.ends_with(&one.1) && one.3 > 0)
        {
            failure.3 -= 1;
            return error_response(failure.2, "told to fail");
        }
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return error_response(404, "the server could not find the requested resource"),
        };
        let Some(kinds) = self.kinds.get(&version) else {
            return error_response(404, "the server could not find the requested resource");
        };
        let plural = match rest {
            [] => return (200, resource_list(&version, kinds)),
            ["namespaces", _, plural, ..] | [plural, ..] => *plural,
        };
        if !kinds.iter().any(|(_, known, _)| *known == plural) {
            return error_response(404, "the server could not find the requested resource");
        }
        match *method {
            Method::GET if rest == [plural] => self.list_objects(plural),
            Method::GET => self.get_object(path),
            Method::PATCH => self.apply_object(path, query, body),
            Method::POST | Method::PUT => self.write_config_map(method, path, body),
            Method::DELETE => self.delete_object(path, body),
            _ => error_response(405, "not allowed"),
        }
    }

    /// The objects of a kind in all namespaces.
    fn list_objects(&self, plural: &str) -> (u16, Value) {
        let of_kind = |path: &str| path.rsplit('/').nth(1) == Some(plural);
        let found = self.objects.iter().filter(|(path, _)| of_kind(path));
        let items: Vec<&Value> = found.map(|(_, object)| object).collect();
        (200, json!({"metadata": {}, "items": items}))
    }

    fn get_object(&self, path: &str) -> (u16, Value) {
        let found = self.objects.get(path).cloned();
        found.map_or_else(|| error_response(404, "not found"), |object| (200, object))
    }

    fn apply_object(&mut self, path: &str, query: &str, body: &Value) -> (u16, Value) {
        if query.contains("force=true") && query.contains("fieldManager=kctl") {
            (200, self.store_object(path, body.clone()))
        } else {
            error_response(409, "applied without force by kctl")
        }
    }

    /// Creates a ConfigMap if it does not exist, or replaces the version that was read.
    fn write_config_map(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        if *method == Method::POST {
            let name = body["metadata"]["name"].as_str().unwrap();
            let path = format!("{path}/{name}");
            if self.objects.contains_key(&path) {
                return error_response(409, "already exists");
            }
            return (201, self.store_object(&path, body.clone()));
        }
        let Some(there) = self.objects.get(path) else {
            return error_response(404, "not found");
        };
        if there["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
            return error_response(409, "the object has been modified");
        }
        (200, self.store_object(path, body.clone()))
    }

    fn delete_object(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let Some(there) = self.objects.get(path) else {
            return error_response(404, "not found");
        };
        let wanted = &body["preconditions"];
        for field in ["uid", "resourceVersion"] {
            if there["metadata"][field] != wanted[field] {
                return error_response(409, "precondition failed");
            }
        }
        let removed = self.objects.remove(path).unwrap();
        (200, removed)
    }

    fn store_object(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        let before = self.objects.get(path);
        let uid = before.map_or_else(
            || json!(format!("uid-{}", self.version)),
            |before| before["metadata"]["uid"].clone(),
        );
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }
}

fn resource_list(version: &str, kinds: &[Kind]) -> Value {
    let resource = |(kind, plural, namespaced): &Kind| json!({"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "patch", "delete"]});
    let resources: Vec<Value> = kinds.iter().map(resource).collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources})
}
