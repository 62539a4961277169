//! Which deprecated APIs clients have asked for, from the metrics of kube-apiserver.

/// The metric; one sample for each deprecated API that was requested since the API server started, with the release that no longer
/// serves it: <https://kubernetes.io/docs/reference/using-api/deprecation-guide/>.
const METRIC: &str = "apiserver_requested_deprecated_apis{";

/// A deprecated API that clients use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeprecatedApi {
    /// `policy/v1beta1 poddisruptionbudgets`.
    pub name: String,
    /// The minor of Kubernetes 1 that no longer serves it, if that is decided.
    pub removed_minor: Option<u32>,
}

/// Reads the deprecated APIs in use from metrics in the text format of Prometheus.
pub fn read_deprecated_apis(metrics: &str) -> Vec<DeprecatedApi> {
    let mut apis: Vec<DeprecatedApi> = metrics
        .lines()
        .filter_map(|line| {
            let (labels, value) = line.strip_prefix(METRIC)?.split_once('}')?;
            let used = value.trim().parse::<f64>().is_ok_and(|value| value > 0.0);
            used.then(|| read_labels(labels))
        })
        .collect();
    apis.sort();
    apis.dedup();
    apis
}

fn read_labels(labels: &str) -> DeprecatedApi {
    let label = |name: &str| {
        let mut pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value.trim_matches('"'))
    };
    let group = match label("group") {
        "" => String::new(),
        group => format!("{group}/"),
    };
    let removed = label("removed_release").strip_prefix("1.");
    DeprecatedApi {
        name: format!("{group}{} {}", label("version"), label("resource")),
        removed_minor: removed.and_then(|minor| minor.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apis_in_use_are_read_with_the_release_that_removes_them() {
        let metrics = "# TYPE apiserver_requested_deprecated_apis gauge\n\
            apiserver_requested_deprecated_apis{group=\"policy\",removed_release=\"1.25\",resource=\"poddisruptionbudgets\",subresource=\"\",version=\"v1beta1\"} 1\n\
            apiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",resource=\"componentstatuses\",subresource=\"\",version=\"v1\"} 1\n\
            apiserver_requested_deprecated_apis{group=\"batch\",removed_release=\"1.25\",resource=\"cronjobs\",subresource=\"\",version=\"v1beta1\"} 0\n";
        let api = |name: &str, removed_minor| DeprecatedApi {
            name: name.to_owned(),
            removed_minor,
        };
        assert_eq!(
            read_deprecated_apis(metrics),
            [
                api("policy/v1beta1 poddisruptionbudgets", Some(25)),
                api("v1 componentstatuses", None),
            ]
        );
    }
}
