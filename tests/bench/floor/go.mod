module lockkeeper.dev/bench/floor

go 1.24
