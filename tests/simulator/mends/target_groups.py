"""Target groups and listeners."""

from __future__ import annotations

from typing import Any, Callable

from moto.core.responses import ActionResult
from moto.elbv2.exceptions import DuplicateListenerError, DuplicateTargetGroupName, ELBClientError
from moto.elbv2.models import ELBv2Backend, FakeAction, FakeListener, FakeTargetGroup
from moto.elbv2.responses import ELBV2Response

from .patch import replace

_NETWORK_ATTRIBUTES = {
    "deregistration_delay.connection_termination.enabled": "false",
    "deregistration_delay.timeout_seconds": "300",
    "load_balancing.cross_zone.enabled": "use_load_balancer_configuration",
    "preserve_client_ip.enabled": "true",
    "proxy_protocol_v2.enabled": "false",
    "stickiness.enabled": "false",
    "stickiness.type": "source_ip",
    "target_group_health.dns_failover.minimum_healthy_targets.count": "1",
    "target_group_health.dns_failover.minimum_healthy_targets.percentage": "off",
    "target_group_health.unhealthy_state_routing.minimum_healthy_targets.count": "1",
    "target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage": "off",
    "target_health_state.unhealthy.connection_termination.enabled": "true",
    "target_health_state.unhealthy.draining_interval_seconds": "0",
}
_NETWORK = ("TCP", "TLS", "UDP", "TCP_UDP")


def creating_a_target_group_twice_makes_one() -> None:
    """AWS: a create with the name and the settings of an existing target group gives that one; with
    other settings it is DuplicateTargetGroupName.
    moto: refuses both.
    """

    def same_name(response: Any, asked: "dict[str, Any]") -> Any:
        return (one for one in response.elbv2_backend.target_groups.values() if one.name == asked["Name"])

    make_once("create_target_group", "TargetGroups", same_name, DuplicateTargetGroupName)


def creating_a_listener_twice_makes_one() -> None:
    """AWS: a second listener for a port is DuplicateListener, unless it is the same listener again.
    moto: makes another one for the port.
    """

    def same_port(response: Any, asked: "dict[str, Any]") -> Any:
        balancer = response.elbv2_backend.load_balancers.get(asked["LoadBalancerArn"])
        listeners = balancer.listeners.values() if balancer is not None else []
        return (one for one in listeners if one.port == asked.get("Port"))

    make_once("create_listener", "Listeners", same_port, DuplicateListenerError)


def make_once(operation: str, key: str, find: "Callable[[Any, dict[str, Any]], Any]", refusal: Any) -> None:
    """A create that finds what it would make gives that, if it was made with the same settings (tags do not count)."""

    @replace(ELBV2Response, operation)
    def create(original: Any, response: Any) -> Any:
        asked = {name: value for name, value in response.params.items() if name != "Tags"}
        found = next(iter(find(response, asked)), None)
        if found is None:
            answer = original(response)
            answer.result[key][0].asked = asked
            return answer
        if found.asked != asked:
            raise refusal()
        return ActionResult({key: [found]})


def target_groups_know_their_balancers() -> None:
    """AWS: LoadBalancerArns are those whose listeners use the group now; a balancer without target
    groups describes none.
    moto: keeps those of deleted balancers, and says TargetGroupNotFound.
    """

    def used_by(group: Any) -> "list[str]":
        from moto.elbv2.models import elbv2_backends

        backend = elbv2_backends[group.account_id][group.region_name]
        return [arn for arn, balancer in backend.load_balancers.items() if _uses(backend, balancer, group.arn)]

    # moto also assigns and appends; neither has an effect any more.
    FakeTargetGroup.load_balancer_arns = property(used_by, lambda _group, _value: None)

    @replace(ELBv2Backend, "describe_target_groups")
    def describe(original: Any, backend: Any, load_balancer_arn: Any, target_group_arns: Any, names: Any) -> Any:
        if load_balancer_arn in backend.load_balancers:
            return [group for group in backend.target_groups.values() if load_balancer_arn in group.load_balancer_arns]
        return original(backend, load_balancer_arn, target_group_arns, names)


def _uses(backend: Any, balancer: Any, arn: str) -> bool:
    for listener in balancer.listeners.values():
        for rule in listener.rules.values():
            for action in rule.actions:
                if arn in backend._get_target_group_arns_from(action_data=action.data):
                    return True
    return False


def network_target_groups_have_their_attributes() -> None:
    """AWS: a target group of TCP, TLS or UDP has the attributes of a network load balancer's; an unknown
    attribute is ValidationError.
    moto: those of an application load balancer's, and takes any.
    """

    @replace(FakeTargetGroup, "__init__")
    def init(original: Any, group: Any, *args: Any, **kwargs: Any) -> None:
        original(group, *args, **kwargs)
        if group.protocol in _NETWORK:
            group.attributes = dict(_NETWORK_ATTRIBUTES)

    @replace(ELBv2Backend, "modify_target_group_attributes")
    def modify(original: Any, backend: Any, arn: str, attributes: Any) -> Any:
        group = backend.target_groups.get(arn)
        for key in attributes:
            if group is not None and group.protocol in _NETWORK and key not in _NETWORK_ATTRIBUTES:
                raise ELBClientError("ValidationError", f"Target group attribute key '{key}' is not recognized")
        return original(backend, arn, attributes)


def health_checks_are_checked() -> None:
    """AWS: a timeout below the interval ("Health check timeout '10' must be smaller than the interval '10'", hashicorp/terraform-
    provider-aws#2366; whether for every protocol is not documented, so this is the stricter reading). A check that becomes HTTP needs
    path and matcher with it (kOps' upup/pkg/fi/cloudup/awstasks/targetgroup.go says so).
    moto: takes any.
    """

    @replace(ELBV2Response, "create_target_group")
    def create(original: Any, response: Any) -> Any:
        interval = response._get_param("HealthCheckIntervalSeconds") or 30
        _check_times(interval, response._get_param("HealthCheckTimeoutSeconds"))
        return original(response)

    @replace(ELBV2Response, "modify_target_group")
    def modify(original: Any, response: Any) -> Any:
        group = response.elbv2_backend.target_groups.get(response._get_param("TargetGroupArn"))
        asked = {name: response._get_param(name) for name in ("HealthCheckProtocol", "HealthCheckPath", "Matcher")}
        becomes = str(asked["HealthCheckProtocol"] or "")
        if group is not None:
            _check_times(
                response._get_param("HealthCheckIntervalSeconds") or group.health_check_interval_seconds,
                response._get_param("HealthCheckTimeoutSeconds") or group.health_check_timeout_seconds,
            )
            if becomes.startswith("HTTP") and not str(group.health_check_protocol).startswith("HTTP"):
                if not asked["HealthCheckPath"] or not asked["Matcher"]:
                    message = f"Health check path and matcher have to be specified with protocol '{becomes}'"
                    raise ELBClientError("InvalidConfigurationRequest", message)
        return original(response)


def _check_times(interval: Any, timeout: Any) -> None:
    if interval and timeout and int(timeout) >= int(interval):
        message = f"Health check timeout '{timeout}' must be smaller than the interval '{interval}'"
        raise ELBClientError("ValidationError", message)


def listeners_describe_what_they_have() -> None:
    """AWS: a listener without TLS has no SSL policy; a forward action describes with its target group in
    both forms; a listener may become UDP or TLS.
    moto: has a policy always, describes the form that was given, and refuses these protocols.
    """

    @replace(FakeListener, "__init__")
    def init(original: Any, listener: Any, *args: Any, **kwargs: Any) -> None:
        original(listener, *args, **kwargs)
        if listener.protocol not in ("HTTPS", "TLS"):
            listener.ssl_policy = None

    @replace(FakeAction, "__init__")
    def action(original: Any, item: Any, data: Any) -> None:
        if data.get("Type") == "forward":
            groups = (data.get("ForwardConfig") or {}).get("TargetGroups") or []
            if data.get("TargetGroupArn") and not groups:
                data = {**data, "ForwardConfig": {"TargetGroups": [{"TargetGroupArn": data["TargetGroupArn"]}]}}
            elif len(groups) == 1 and not data.get("TargetGroupArn"):
                data = {**data, "TargetGroupArn": groups[0]["TargetGroupArn"]}
        original(item, data)

    @replace(ELBv2Backend, "modify_listener")
    def modify(original: Any, backend: Any, arn: str, port: Any, protocol: Any, *args: Any, **kwargs: Any) -> Any:
        if protocol not in ("TLS", "UDP", "TCP_UDP"):
            return original(backend, arn, port, protocol, *args, **kwargs)
        listener = original(backend, arn, port, None, *args, **kwargs)
        listener.protocol = protocol
        return listener
