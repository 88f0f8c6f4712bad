"""Pure domain rules: no Pulumi, no I/O. Settings validation, components, policies and smoke all call these."""
