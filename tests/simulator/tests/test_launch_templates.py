"""Launch templates and their versions."""

from __future__ import annotations

from . import make
from .errors import code_of


def new_version(aws, name, **data):
    settings = {"ImageId": make.image(aws), "InstanceType": "t3.medium", **data}
    made = aws.ec2.create_launch_template_version(LaunchTemplateName=name, LaunchTemplateData=settings)
    return made["LaunchTemplateVersion"]["VersionNumber"]


def versions(aws, name, **more):
    found = aws.ec2.describe_launch_template_versions(LaunchTemplateName=name, **more)
    return found["LaunchTemplateVersions"]


def test_the_default_version_is_not_deleted(both):
    name = make.template(both)
    new_version(both, name)
    answer = both.ec2.delete_launch_template_versions(LaunchTemplateName=name, Versions=["1"])
    assert answer["SuccessfullyDeletedLaunchTemplateVersions"] == []
    assert [version["VersionNumber"] for version in versions(both, name)] == [1, 2]


def test_a_version_starts_from_its_source(both):
    name = make.template(both, KeyName="k", UserData=make.user_data("one"))
    data = {"InstanceType": "t3.large"}
    both.ec2.create_launch_template_version(LaunchTemplateName=name, SourceVersion="1", LaunchTemplateData=data)
    (latest,) = versions(both, name, Versions=["$Latest"])
    assert latest["LaunchTemplateData"]["KeyName"] == "k"
    assert latest["LaunchTemplateData"]["InstanceType"] == "t3.large"


def test_one_call_deletes_200_versions(both):
    name = make.template(both)
    delete = both.ec2.delete_launch_template_versions
    versions = [str(number) for number in range(2, 203)]
    assert code_of(delete, LaunchTemplateName=name, Versions=versions) == "InvalidParameterValue"


def test_a_price_comes_back_as_a_number(both):
    market = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.05"}}
    name = make.template(both, InstanceMarketOptions=market)
    (version,) = versions(both, name)
    assert version["LaunchTemplateData"]["InstanceMarketOptions"]["SpotOptions"]["MaxPrice"] == "0.050000"
