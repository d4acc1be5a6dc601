"""Process and machine: errors, devices, transfer to the host, interrupts, the console."""
