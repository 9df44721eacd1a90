"""The client floor: alone turns URLs into stores, and joins doors, engine and stores."""
