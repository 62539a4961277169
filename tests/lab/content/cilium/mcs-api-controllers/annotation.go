// Package controllers stands in for a module that is not served: cilium needs one constant of it.
package controllers

// DerivedServiceAnnotation names the Service that was derived from a ServiceImport.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
