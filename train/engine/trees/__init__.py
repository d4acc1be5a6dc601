"""The trees of many sessions on the device, and the programs that search them on."""
