"""Resources of Elastic Load Balancing."""

from __future__ import annotations

from moto.elbv2.models import elbv2_backends

from .needs import Asked, Need, Resource, action, of_pairs

_NAMING = (
    "LoadBalancerArn",
    "LoadBalancerArns",
    "ListenerArn",
    "ListenerArns",
    "RuleArn",
    "TargetGroupArn",
    "ResourceArns",
)
# What of EC2 the caller needs too ("Elastic Load Balancing API permissions", Elastic Load Balancing User Guide), and for a balancer
# with security groups (kubernetes-sigs/aws-load-balancer-controller#3917).
_OF_EC2 = {
    "CreateLoadBalancer": (
        "DescribeAccountAttributes",
        "DescribeAddresses",
        "DescribeInternetGateways",
        "DescribeSecurityGroups",
        "DescribeSubnets",
        "DescribeVpcs",
    ),
    "CreateTargetGroup": ("DescribeInternetGateways", "DescribeVpcs"),
    "SetSecurityGroups": ("DescribeSecurityGroups",),
    "SetSubnets": ("DescribeSubnets",),
}
_TYPES = {"application": "app", "network": "net", "gateway": "gwy"}


def list_needs(asked: Asked) -> "list[Need]":
    """What is named by ARN, or is about to be made; looking is on `*`.

    Tags given at creation need elasticloadbalancing:AddTags too. The thing that is made counts as having them
    already, since policies for it are written with aws:ResourceTag as well as with aws:RequestTag.
    """
    if asked.operation.startswith("Describe"):
        return [Need(action(asked))]
    tags = of_pairs(asked.parameters.get("Tags"))
    if asked.operation in ("CreateLoadBalancer", "CreateTargetGroup"):
        arn = asked.arn("elasticloadbalancing", _new(asked))
        return [Need(action(asked), (Resource(arn, {}, tags),)), *_tagging(asked, [arn], tags), *_of_ec2(asked)]
    arns = [arn for name in _NAMING for arn in asked.texts(name)]
    resources = tuple(Resource(arn, _tags(asked, arn), tags) for arn in arns)
    needs = [Need(action(asked), resources or (Resource(),)), *_of_ec2(asked)]
    if asked.operation == "CreateListener":
        needs += _tagging(asked, [arn.replace(":loadbalancer/", ":listener/") + "/*" for arn in arns], tags)
    return needs


def _of_ec2(asked: Asked) -> "list[Need]":
    names = list(_OF_EC2.get(asked.operation, ()))
    if asked.operation == "CreateLoadBalancer" and asked.parameters.get("SecurityGroups"):
        names.append("GetSecurityGroupsForVpc")
    return [Need(f"ec2:{name}") for name in names]


def _new(asked: Asked) -> str:
    name = asked.parameters.get("Name", "")
    if asked.operation == "CreateTargetGroup":
        return f"targetgroup/{name}/*"
    return f"loadbalancer/{_TYPES.get(str(asked.parameters.get('Type', 'application')), 'app')}/{name}/*"


def _tagging(asked: Asked, arns: "list[str]", tags: "dict[str, str]") -> "list[Need]":
    if not tags:
        return []
    context = {"elasticloadbalancing:createaction": [asked.operation]}
    return [Need("elasticloadbalancing:AddTags", tuple(Resource(arn, tags, tags) for arn in arns), context)]


def _tags(asked: Asked, arn: str) -> "dict[str, str]":
    found: "dict[str, str]" = elbv2_backends[asked.account][asked.region].tagging_service.get_tag_dict_for_resource(arn)
    return dict(found)
