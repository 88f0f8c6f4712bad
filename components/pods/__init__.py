"""Pure builders of pod specs, shared by components and backends; no Pulumi import."""
