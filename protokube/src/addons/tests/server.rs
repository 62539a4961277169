//! An API server on a loopback port, as far as addons need one: discovery, server-side apply, ConfigMaps with versions, deletion
//! with preconditions. It fails where it is told to.

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

/// Kinds of an API version: kind, plural, whether it is in a namespace.
type Kind = (&'static str, &'static str, bool);

pub const CORE: [Kind; 3] = [
    ("ConfigMap", "configmaps", true),
    ("Namespace", "namespaces", false),
    ("ServiceAccount", "serviceaccounts", true),
];
pub const APPS: [Kind; 2] = [
    ("DaemonSet", "daemonsets", true),
    ("Deployment", "deployments", true),
];

/// Changes objects when a request, method and path, arrives.
type Meanwhile = Box<dyn FnMut(&mut BTreeMap<String, Value>, &str) + Send>;

#[derive(Default)]
pub struct World {
    /// Kinds by API version.
    pub kinds: BTreeMap<String, Vec<Kind>>,
    /// Objects by path.
    pub objects: BTreeMap<String, Value>,
    /// Requests: method and path with its query.
    pub requests: Vec<String>,
    /// What to answer in the place of what would be: method, end of the path, status, how often.
    pub failures: Vec<(Method, String, u16, usize)>,
    /// Called with each request before it is answered, to change the world meanwhile.
    pub meanwhile: Option<Meanwhile>,
    version: u64,
}

/// The server. It ends with the test's runtime.
#[derive(Clone)]
pub struct Server {
    pub world: Arc<Mutex<World>>,
    address: std::net::SocketAddr,
}

impl Server {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let world = World {
            kinds: [
                ("v1".into(), CORE.to_vec()),
                ("apps/v1".into(), APPS.to_vec()),
            ]
            .into(),
            ..World::default()
        };
        let server = Self {
            world: Arc::new(Mutex::new(world)),
            address,
        };
        let world = server.world.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let world = world.clone();
                let serve =
                    hyper::service::service_fn(move |request| answer(world.clone(), request));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), serve),
                );
            }
        });
        server
    }

    pub fn client(&self) -> Client {
        let url = format!("http://{}", self.address).parse().unwrap();
        Client::try_from(Config::new(url)).unwrap()
    }

    /// The requests since the last time, without their queries.
    pub fn take_requests(&self) -> Vec<String> {
        let requests = std::mem::take(&mut self.world.lock().unwrap().requests);
        let bare = requests
            .iter()
            .map(|one| one.split('?').next().unwrap_or_default());
        bare.map(str::to_owned).collect()
    }

    /// Names at the end of the paths of all objects but the record.
    pub fn names(&self) -> Vec<String> {
        let world = self.world.lock().unwrap();
        let paths = world
            .objects
            .keys()
            .filter(|path| !path.ends_with("/kctl-addons"));
        paths
            .filter_map(|path| path.rsplit('/').next())
            .map(str::to_owned)
            .collect()
    }

    pub fn object(&self, name: &str) -> Option<Value> {
        let world = self.world.lock().unwrap();
        let mut found = world
            .objects
            .iter()
            .filter(|(path, _)| path.ends_with(&format!("/{name}")));
        found.next().map(|(_, object)| object.clone())
    }

    pub fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut world = self.world.lock().unwrap();
        let mut found = world
            .objects
            .iter_mut()
            .filter(|(path, _)| path.ends_with(&format!("/{name}")));
        change(found.next().unwrap().1);
    }

    /// It has that kind from now on, at that path, in namespaces; and no other of that API version.
    pub fn has(&self, api_version: &str, kind: &'static str, path: &'static str) {
        let kinds = vec![(kind, path, true)];
        let mut world = self.world.lock().unwrap();
        world.kinds.insert(api_version.to_owned(), kinds);
    }

    pub fn fail(&self, method: Method, path: &str, status: u16, times: usize) {
        let mut world = self.world.lock().unwrap();
        world
            .failures
            .push((method, path.to_owned(), status, times));
    }
}

async fn answer(
    world: Arc<Mutex<World>>,
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
        let mut world = world.lock().unwrap();
        let asked = parts.uri.to_string();
        world.requests.push(format!("{} {asked}", parts.method));
        if let Some(mut meanwhile) = world.meanwhile.take() {
            meanwhile(&mut world.objects, &format!("{} {path}", parts.method));
            world.meanwhile = Some(meanwhile);
        }
        let query = parts.uri.query().unwrap_or_default();
        world.answer(&parts.method, &path, query, &body)
    };
    let mut response = Response::new(Full::from(value.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let json = hyper::header::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, json);
    Ok(response)
}

fn status(code: u16, message: &str) -> (u16, Value) {
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

impl World {
    fn answer(&mut self, method: &Method, path: &str, query: &str, body: &Value) -> (u16, Value) {
        let mut failures = self.failures.iter_mut();
        if let Some(failure) =
            failures.find(|one| one.0 == *method && path.ends_with(&one.1) && one.3 > 0)
        {
            failure.3 -= 1;
            return status(failure.2, "told to fail");
        }
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ((*version).to_owned(), rest),
            ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
            _ => return status(404, "the server could not find the requested resource"),
        };
        let Some(kinds) = self.kinds.get(&version) else {
            return status(404, "the server could not find the requested resource");
        };
        let plural = match rest {
            [] => return (200, resources(&version, kinds)),
            ["namespaces", _, plural, ..] | [plural, ..] => *plural,
        };
        if !kinds.iter().any(|(_, known, _)| *known == plural) {
            return status(404, "the server could not find the requested resource");
        }
        match *method {
            Method::GET => self.get(path),
            Method::PATCH => self.apply(path, query, body),
            Method::POST | Method::PUT => self.write(method, path, body),
            Method::DELETE => self.delete(path, body),
            _ => status(405, "not allowed"),
        }
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let found = self.objects.get(path).cloned();
        found.map_or_else(|| status(404, "not found"), |object| (200, object))
    }

    fn apply(&mut self, path: &str, query: &str, body: &Value) -> (u16, Value) {
        if query.contains("force=true") && query.contains("fieldManager=kctl") {
            (200, self.store(path, body.clone()))
        } else {
            status(409, "applied without force by kctl")
        }
    }

    /// ConfigMaps: made if absent, replaced at the version that was read.
    fn write(&mut self, method: &Method, path: &str, body: &Value) -> (u16, Value) {
        if *method == Method::POST {
            let name = body["metadata"]["name"].as_str().unwrap();
            let path = format!("{path}/{name}");
            if self.objects.contains_key(&path) {
                return status(409, "already exists");
            }
            return (201, self.store(&path, body.clone()));
        }
        let Some(there) = self.objects.get(path) else {
            return status(404, "not found");
        };
        if there["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
            return status(409, "the object has been modified");
        }
        (200, self.store(path, body.clone()))
    }

    fn delete(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let Some(there) = self.objects.get(path) else {
            return status(404, "not found");
        };
        let wanted = &body["preconditions"];
        for field in ["uid", "resourceVersion"] {
            if there["metadata"][field] != wanted[field] {
                return status(409, "precondition failed");
            }
        }
        let gone = self.objects.remove(path).unwrap();
        (200, gone)
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
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

fn resources(version: &str, kinds: &[Kind]) -> Value {
    let resource = |(kind, plural, namespaced): &Kind| json!({"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "patch", "delete"]});
    let resources: Vec<Value> = kinds.iter().map(resource).collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources})
}
