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


def test_tags_of_the_template_stay_out_of_its_data(both):
    name = both.unique("template")
    tags = [{"Key": "a", "Value": "b"}]
    both.ec2.create_launch_template(
        LaunchTemplateName=name,
        LaunchTemplateData={"TagSpecifications": [{"ResourceType": "instance", "Tags": tags}]},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
    )
    (version,) = versions(both, name)
    assert version["LaunchTemplateData"]["TagSpecifications"] == [{"ResourceType": "instance", "Tags": tags}]


def test_tags_set_later_are_shown(both):
    name = make.template(both)
    (template,) = both.ec2.describe_launch_templates(LaunchTemplateNames=[name])["LaunchTemplates"]
    tag = {"Key": "later", "Value": "yes"}
    both.ec2.create_tags(Resources=[template["LaunchTemplateId"]], Tags=[tag])
    (template,) = both.ec2.describe_launch_templates(LaunchTemplateNames=[name])["LaunchTemplates"]
    assert tag in template["Tags"]


def test_versions_are_deleted_and_their_numbers_not_used_again(both):
    name = make.template(both)
    for _ in range(3):
        new_version(both, name)
    answer = both.ec2.delete_launch_template_versions(LaunchTemplateName=name, Versions=["2", "4", "9"])
    done = [item["VersionNumber"] for item in answer["SuccessfullyDeletedLaunchTemplateVersions"]]
    (failed,) = answer["UnsuccessfullyDeletedLaunchTemplateVersions"]
    assert (done, failed["VersionNumber"]) == ([2, 4], 9)
    assert [version["VersionNumber"] for version in versions(both, name)] == [1, 3]
    assert [version["VersionNumber"] for version in versions(both, name, Versions=["$Latest"])] == [3]
    assert new_version(both, name) == 5


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


def test_the_latest_version_of_every_template_comes_in_pages(both):
    names = {make.template(both) for _ in range(17)}
    latest = make.template(both)
    new_version(both, latest)
    pages = both.ec2.get_paginator("describe_launch_template_versions").paginate(Versions=["$Latest"], MaxResults=7)
    found = {}
    for page in pages:
        assert len(page["LaunchTemplateVersions"]) <= 7
        found.update({v["LaunchTemplateName"]: v["VersionNumber"] for v in page["LaunchTemplateVersions"]})
    assert names <= set(found) and found[latest] == 2


def test_more_than_fifteen_templates_are_described(both):
    names = {make.template(both) for _ in range(17)}
    assert names <= {t["LaunchTemplateName"] for t in both.ec2.describe_launch_templates()["LaunchTemplates"]}


def test_a_repeated_client_token_gives_the_same_template_and_version(both):
    name, token = both.unique("template"), both.unique("token")
    create = {"LaunchTemplateName": name, "LaunchTemplateData": {"InstanceType": "t3.medium"}, "ClientToken": token}
    first, second = [both.ec2.create_launch_template(**create)["LaunchTemplate"] for _ in range(2)]
    assert first["LaunchTemplateId"] == second["LaunchTemplateId"]
    numbers = [
        both.ec2.create_launch_template_version(**create)["LaunchTemplateVersion"]["VersionNumber"] for _ in range(2)
    ]
    assert numbers == [2, 2]


def test_a_name_is_unique(aws):
    name = make.template(aws)
    again = {"LaunchTemplateName": name, "LaunchTemplateData": {"InstanceType": "t3.medium"}}
    code = "InvalidLaunchTemplateName.AlreadyExistsException"
    assert code_of(aws.ec2.create_launch_template, **again) == code


def test_a_template_is_found_by_tag_and_deleted(aws):
    name = aws.unique("template")
    tags = [{"ResourceType": "launch-template", "Tags": [{"Key": "cluster", "Value": name}]}]
    aws.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData={"ImageId": "x"}, TagSpecifications=tags)
    filters = [{"Name": "tag:cluster", "Values": [name]}]
    (found,) = aws.ec2.describe_launch_templates(Filters=filters)["LaunchTemplates"]
    assert found["Tags"] == [{"Key": "cluster", "Value": name}]
    aws.ec2.delete_launch_template(LaunchTemplateId=found["LaunchTemplateId"])
    assert aws.ec2.describe_launch_templates(Filters=filters)["LaunchTemplates"] == []


def test_tags_of_a_template_change(both):
    name = make.template(both)
    (found,) = both.ec2.describe_launch_templates(LaunchTemplateNames=[name])["LaunchTemplates"]
    both.ec2.create_tags(Resources=[found["LaunchTemplateId"]], Tags=[{"Key": "colour", "Value": "blue"}])
    (found,) = both.ec2.describe_launch_templates(LaunchTemplateNames=[name])["LaunchTemplates"]
    assert found["Tags"] == [{"Key": "colour", "Value": "blue"}]
