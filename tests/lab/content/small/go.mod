module kctl.dev/lab/small

go 1.26
