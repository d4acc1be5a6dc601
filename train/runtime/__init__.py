"""Process and machine: errors, devices, transfer to the host, interrupts."""
