// pulumi-resource-kubernetes, built from its Go module.
// schema.json (with "version" set) and terraform-mapping.json in the module's cmd/pulumi-resource-kubernetes folder.
// Build with -ldflags "-X github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version=vX.Y.Z".
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema-embed.json
var schema []byte

//go:embed terraform-mapping-embed.json
var mapping []byte

func main() { provider.Serve("kubernetes", version.Version, schema, mapping) }
