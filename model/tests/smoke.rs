use model::api::Object;
use model::catalog::Catalog;
use model::facts::*;
use model::full::Arch;
use model::read::*;
#[test]
fn smoke() {
    let dir = std::env::var("KCTL_KOPS_FIXTURES").unwrap();
    let mut facts = Facts {
        account: "123456789012".into(),
        partition: "aws-test".into(),
        stand_in: true,
        ..Facts::default()
    };
    facts.hosted_zones.push(HostedZone {
        id: "Z1AFAKE1ZON3YO".into(),
        name: "example.com".into(),
        private: false,
    });
    facts.images.insert(
        "ubuntu/images/hvm-ssd-gp3/ubuntu-resolute-26.04-amd64-server-20220404".into(),
        Image {
            id: "ami-12345678".into(),
            root_device: "/dev/xvda".into(),
            arch: Arch::Amd64,
        },
    );
    for entry in std::fs::read_dir(format!("{dir}/update_cluster")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(path.join("in.yaml")).unwrap();
        println!("#### {}", path.display());
        let docs = match read_documents_with(
            "in.yaml",
            &text,
            ReadOptions {
                allow_unsupported: true,
            },
        ) {
            Ok(d) => d,
            Err(p) => {
                println!("{}", render(&p));
                continue;
            }
        };
        let mut cluster = None;
        let mut groups = vec![];
        for d in docs {
            match d.object {
                Object::Cluster(c) => cluster = Some(c),
                Object::InstanceGroup(g) => groups.push(g),
                _ => {}
            }
        }
        let key = std::fs::read_to_string(path.join("id_rsa.pub")).unwrap();
        match model::expand::expand(
            &cluster.unwrap(),
            &groups,
            &[key],
            &facts,
            &Catalog::embedded().unwrap(),
        ) {
            Ok(e) => {
                println!("{}", render(&e.warnings));
                if path.ends_with("complex") {
                    println!("{}", model::api::write::to_yaml(&e.cluster).unwrap());
                    println!("{:#?}", e.full);
                    for g in &e.groups {
                        println!("{}", model::api::write::to_yaml(g).unwrap());
                    }
                }
            }
            Err(p) => println!("{}", render(&p)),
        }
    }
}
