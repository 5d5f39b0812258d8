fn main() -> Result<(), lockkeeper_crdgen::generator::Error> {
    println!("cargo::rerun-if-changed=src/reservation.rs");
    lockkeeper_crdgen::Generator::default()
        .kind::<reservation::Reservation>()
        .write_to(std::path::Path::new("deploy/crds"))
}

#[path = "src/reservation.rs"]
mod reservation;
